// GradientBuffers: where a micro-batch's gradients of Parameters go, and which of them are there. The buffers belong to
// whoever owns the gradients (Bucket::grads).
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "bench_kernels/kernels/ops.h"
#include "bench_kernels/model/stacks.h"

namespace sweep::model {

class Parameters;

class GradientBuffers {
 public:
  using Id = std::size_t;
  explicit GradientBuffers(const Parameters& parameters) : parameters_(parameters) {}

  // products_staged: products write in the values' type even where they could write the buffers'.
  void begin(std::size_t stacks, bool products_staged);
  // The destination of a stack's gradient: the first writer since forget() overwrites it, later ones add to it. If the
  // buffer is of another type than the values, a temporary of the values' type takes what this micro-batch writes, and
  // ready() adds it to the buffer.
  kernels::GradOut of(Id);
  // The same for a product's result, which a GPU writes into a buffer of fp32 without a temporary.
  kernels::GradOut of_product(Id);
  // Says that this micro-batch's part of the gradient is there: tells the observer.
  void ready(Id);
  void forget(const Bucket&);
  void set_observer(std::function<void(Id)> observer) { observer_ = std::move(observer); }

 private:
  kernels::GradOut in_buffer(Id);

  const Parameters& parameters_;
  bool products_staged_ = false;
  // Each has an entry for each stack.
  std::vector<bool> written_;       // whether it was written since forget()
  std::vector<at::Tensor> staged_;  // this micro-batch's gradient in the values' type
  std::function<void(Id)> observer_;
};

}  // namespace sweep::model
