// Operations as an eager training loop runs them under PyTorch's autocast on a GPU (torch.amp, "CUDA Ops that can
// autocast to float32"): products in 16 bits; norms, softmax, powers and the loss on copies in fp32; and every tensor
// that autograd would save for them is kept until backward. On each device these are the same library operators, so
// that what they allocate is the same.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "bench_kernels/kernels/ops.h"

namespace sweep::kernels {

// An activation of [T, N], or gated of [T, 2N]: what it keeps, in the order of its operators, and its result.
struct EagerActivation {
  std::vector<at::Tensor> kept;
  at::Tensor out;  // [T, N]
};
// kGelu is minGPT's and transformers' "gelu_new", in five operators: its power is taken in fp32, and so all that follows.
// The gates are one operator and a product. What of `in` nobody reads later is freed.
EagerActivation eager_activation(Activation, at::Tensor in);
// The gradient of `in`; what was kept is freed on the way.
at::Tensor eager_activation_backward(Activation, std::vector<at::Tensor> kept, const at::Tensor& dout);

// A norm in fp32: x, in fp32, is what its backward reads; y is in 16 bits.
NormStats eager_norm(const at::Tensor& x, const Norm&, const at::Tensor& y);
// dx = residual + gradient of the norm, all three in 16 bits; dx may be dy.
void eager_norm_backward(const at::Tensor& dy, const at::Tensor& x, const Norm&, const NormStats&,
                         const at::Tensor& residual, const at::Tensor& dx, const GradOut& dw,
                         const GradOut& db);

// As cross_entropy(), of all rows at once: three tensors of the logits' size in fp32 are there together.
void eager_cross_entropy(const at::Tensor& logits, const Labels&, double scale, const at::Tensor& total);

}  // namespace sweep::kernels
