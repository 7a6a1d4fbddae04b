#include "bench_kernels/model/gradient_buffers.h"

#include <ATen/ATen.h>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/model/parameters.h"

namespace sweep::model {

void GradientBuffers::begin(std::size_t stacks, bool products_staged) {
  products_staged_ = products_staged;
  written_.assign(stacks, false);
  staged_.resize(stacks);
}

kernels::GradOut GradientBuffers::of(Id id) {
  const Bucket& bucket = parameters_.bucket_of(id);
  TORCH_INTERNAL_ASSERT(bucket.grads.defined());
  if (bucket.grads.scalar_type() != bucket.values.scalar_type()) {
    at::Tensor& staged = staged_[id];
    const bool again = staged.defined();
    if (!again) staged = at::empty(parameters_[id].sizes(), parameters_[id].options());
    return {staged, again};
  }
  return in_buffer(id);
}

kernels::GradOut GradientBuffers::of_product(Id id) {
  const Bucket& bucket = parameters_.bucket_of(id);
  TORCH_INTERNAL_ASSERT(bucket.grads.defined());
  if (products_staged_ || !kernels::writes_sums(bucket.values, bucket.grads.scalar_type())) return of(id);
  return in_buffer(id);
}

kernels::GradOut GradientBuffers::in_buffer(Id id) {
  const bool add = written_[id];
  written_[id] = true;
  return {parameters_.gradient(id), add};
}

void GradientBuffers::ready(Id id) {
  if (staged_[id].defined()) {
    const memory::ScratchScope scratch;  // the library's cast of the operand on CPU
    at::Tensor sum = parameters_.gradient(id);
    if (written_[id])
      sum.add_(staged_[id]);
    else
      sum.copy_(staged_[id]);
    written_[id] = true;
    staged_[id].reset();
  }
  if (observer_) observer_(id);
}

void GradientBuffers::forget(const Bucket& bucket) {
  for (const Id id : bucket.stacks) written_[id] = false;
}

}  // namespace sweep::model
