#include "bench_kernels/parallel/optimizer_state.h"

#include <ATen/ATen.h>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/parallel/flat.h"
#include "bench_kernels/shape/model_states.h"

namespace sweep::parallel {

OptimizerState::OptimizerState(const StatePlan& plan, Values& values, OptimizerKind kind,
                               optim::OptimizerOptions options)
    : plan_(plan), values_(values), buckets_(values.trained()) {
  const at::NoGradGuard no_grad;
  std::optional<memory::HostScope> host;
  if (plan.optimizer_outside) host.emplace();
  std::vector<at::Tensor> parts, masters;
  for (const std::size_t b : buckets_) {
    parts.push_back(values.part(b));
    masters.push_back(values.take_master(b));
  }
  if (plan.optimizer_in_file) {
    file_.emplace(std::move(parts), masters, kind, options);
    return;
  }
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    at::Tensor p = plan.master ? masters[i] : parts[i];
    if (!plan.master && plan.apart()) p = empty_outside(p.numel(), p.device(), p.scalar_type()).copy_(p);
    updated_.push_back(std::move(p));
  }
  optimizer_.emplace(updated_, kind, static_cast<std::size_t>(shape::moments_of(kind)), options);
}

// The gradient is not where the update runs, or of another type.
bool OptimizerState::needs_copies(const Gradients& gradients) const {
  if (plan_.optimizer_outside || buckets_.empty()) return plan_.optimizer_outside;
  return gradients.part(buckets_[0]).scalar_type() != updated_[0].scalar_type();
}

at::Tensor OptimizerState::copied_gradient(std::size_t b, const Gradients& gradients,
                                           double coefficient) const {
  const at::Tensor grad = gradients.part(b);
  const at::ScalarType type = plan_.master ? at::kFloat : plan_.weights;
  at::Tensor copy = plan_.optimizer_outside ? empty_outside(grad.numel(), grad.device(), type)
                                            : at::empty(grad.sizes(), grad.options().dtype(type));
  copy.copy_(grad);
  return coefficient == 1 ? copy : copy.mul_(coefficient);
}

void OptimizerState::update_copy(std::size_t i, const Gradients& gradients, double coefficient) {
  std::optional<memory::HostScope> host;  // the update's temporaries lie where it runs
  if (plan_.optimizer_outside) host.emplace();
  const at::Tensor grad = copied_gradient(buckets_[i], gradients, coefficient);
  if (file_)
    file_->update(i, grad);
  else
    optimizer_->step_one(i, grad);
}

bool OptimizerState::update(const Gradients& gradients, double coefficient) {
  const at::NoGradGuard no_grad;
  const bool copies = needs_copies(gradients);
  if (file_) file_->begin_step();
  if (optimizer_ && copies) optimizer_->begin_step();
  if (!copies) {
    std::vector<at::Tensor> grads;
    for (const std::size_t b : buckets_) {
      grads.push_back(gradients.part(b));
      if (coefficient != 1) grads.back().mul_(coefficient);
    }
    optimizer_->step(grads);
  }
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const std::size_t b = buckets_[i];
    if (copies) update_copy(i, gradients, coefficient);
    if (plan_.apart() && !file_) values_.part(b).copy_(updated_[i], /*non_blocking=*/true);
    values_.start_spread(b);
  }
  values_.finish_spread();
  return !copies;
}

std::int64_t OptimizerState::bytes() const {
  if (plan_.optimizer_outside) return 0;
  std::int64_t sum = optimizer_->bytes();
  if (plan_.master)
    for (const at::Tensor& master : updated_) sum += static_cast<std::int64_t>(master.nbytes());
  return sum;
}

}  // namespace sweep::parallel
