// AdamW over a fixed list of parameters, in one of three implementations: plain (operators per tensor),
// foreach (operators over lists), fused (one kernel). It owns the moments, in the parameters' type, allocated
// at once; it never touches gradients. update() is the same without an owner, for moments kept elsewhere. All
// three compute the same update (Loshchilov and Hutter 2019, as torch.optim.AdamW) up to rounding.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "schema/trial.h"

namespace sweep::optim {

// Fixed for every trial. The learning rate is small: a step costs the same, and a model of any size without
// warm-up does not diverge in the few steps that are timed.
struct AdamWOptions {
  double lr = 1e-5, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
};

// The values of one step, list by list; all of one type, on one device.
struct Lists {
  std::vector<at::Tensor> parameters, grads, mean, square;
};
// One update of all, the count-th; step_tensor (fp32 scalar on their device) is what the fused kernel reads.
void update(AdamWKind, const AdamWOptions&, std::int64_t count, const Lists&, const at::Tensor& step_tensor);

class AdamW {
 public:
  AdamW(std::vector<at::Tensor> parameters, AdamWKind, AdamWOptions = {});
  // One update; one gradient per parameter, in their order, of the parameter's shape and type.
  void step(const std::vector<at::Tensor>& grads);
  // The same in parts: begin_step(), then each parameter once, in any order.
  void begin_step() { ++count_; }
  void step_one(std::size_t i, const at::Tensor& grad);
  // Bytes of the moments (without the count of the fused kernel).
  std::int64_t bytes() const;

 private:
  AdamWKind kind_;
  AdamWOptions options_;
  Lists lists_;
  at::Tensor step_tensor_;  // fused: the count where the kernel reads it
  std::int64_t count_ = 0;
};

}  // namespace sweep::optim
