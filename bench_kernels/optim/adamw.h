// AdamW over a fixed list of parameters, in one of three implementations: plain (operators per tensor),
// foreach (operators over lists), fused (one kernel). It owns the moments, in the parameters' type, allocated
// at once; it never touches gradients. All three compute the same update (Loshchilov and Hutter 2019, as
// torch.optim.AdamW) up to rounding.
#pragma once
#include <ATen/core/Tensor.h>

#include <string_view>
#include <vector>

namespace sweep::optim {

// Fixed for every trial: a benchmark's optimizer has to move the loss, not to tune it.
struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
};

enum class Kind { kPlain, kForeach, kFused };
Kind kind_from(std::string_view name);  // throws std::invalid_argument for any other name

class AdamW {
 public:
  AdamW(std::vector<at::Tensor> parameters, Kind, AdamWOptions = {});
  // One update; one gradient per parameter, in their order, of the parameter's shape.
  void step(const std::vector<at::Tensor>& grads);

 private:
  void plain(const std::vector<at::Tensor>& grads);
  void foreach (const std::vector<at::Tensor>& grads);
  void fused(const std::vector<at::Tensor>& grads);

  Kind kind_;
  AdamWOptions options_;
  std::vector<at::Tensor> parameters_, mean_, square_;
  at::Tensor step_tensor_;                // fused: the count where the kernel reads it
  std::vector<at::Tensor> step_tensors_;  // the same tensor once per parameter
  std::int64_t count_ = 0;
};

}  // namespace sweep::optim
