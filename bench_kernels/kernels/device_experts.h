// Private to this room: the fused kernels of a layer of experts (device/experts.h) as launches.
#pragma once
#include "bench_kernels/kernels/moe.h"

namespace sweep::kernels::device {

struct Routing {
  at::Tensor probs, experts, weights;  // moe.h says what these are
};
// probs, and where experts and weights are defined the weights.
void router(const at::Tensor& logits, const Routing&, const Gate&);
void router_backward(const Routing&, const at::Tensor& dweights, const at::Tensor& dprobs,
                     const at::Tensor& dlogits, const Gate&);
// rows [n, width] in sending order; weights undefined: the sum; base undefined: nothing.
void combine(const at::Tensor& rows, const at::Tensor& places, const at::Tensor& weights,
             const at::Tensor& base, const at::Tensor& to);
// rows become their gradient.
void combine_backward(const at::Tensor& grad, const at::Tensor& places, const at::Tensor& weights,
                      const at::Tensor& rows, const at::Tensor& dweights);
// A group's bias, of [groups, n], is added to its rows; the reverse for its gradient. ends: int32 [groups].
void add_group_bias(const at::Tensor& rows, const at::Tensor& ends, const at::Tensor& bias);
void sum_group_bias(const at::Tensor& rows, const at::Tensor& ends, const GradOut& bias);

}  // namespace sweep::kernels::device
