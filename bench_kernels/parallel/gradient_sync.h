// A GradientSync averages the gradients of a fixed list of parameters over the ranks of a data-parallel
// group, while backward still runs. It owns the buckets and the pending communication; it knows nothing of
// the model, the loss or the optimizer.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sweep::parallel {

class GradientSync {
 public:
  virtual ~GradientSync() = default;
  // Registers post-accumulate hooks on every parameter, once, before the first backward. After finish() the
  // gradients are averaged over the ranks.
  virtual void attach(const std::vector<at::Tensor>& params) = 0;
  // Only the last micro-step of a step communicates; call it before each micro-step's backward.
  virtual void set_last_micro_step(bool last) = 0;
  // After the backward of the last micro-step: waits for what is still under way; gradients are then the
  // average.
  virtual void finish() = 0;
  // Time the last finish() waited for communication that backward did not hide.
  virtual std::int64_t exposed_wait_ns() const = 0;
};

}  // namespace sweep::parallel
