#include "bench_kernels/parallel/optimizer_state.h"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <utility>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/parallel/flat.h"
#include "bench_kernels/shape/optimizer_states.h"

namespace sweep::parallel {

std::vector<optim::Extent> extents_of(const model::Parameters& parameters, std::size_t bucket) {
  std::vector<optim::Extent> extents;
  for (const auto id : parameters.buckets()[bucket].stacks) {
    const auto& stack = parameters.stacks()[id];
    std::int64_t at = stack.offset;
    for (const auto& part : stack.parts) {
      if (part.real_rows() > 0) extents.push_back({at, part.real_rows(), stack.columns});
      at += part.rows * std::max<std::int64_t>(1, stack.columns);
    }
  }
  return extents;
}

OptimizerState::OptimizerState(const StatePlan& plan, Values& values, const model::Parameters& parameters,
                               OptimizerKind kind, optim::OptimizerOptions options)
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
  if (kind == OptimizerKind::kPagedAdamw) {
    paged_.emplace(updated_, options, shape::kPage);
  } else if (kind == OptimizerKind::kAdafactor) {
    std::vector<std::vector<optim::Extent>> extents;
    for (const std::size_t b : buckets_) extents.push_back(extents_of(parameters, b));
    adafactor_.emplace(updated_, std::move(extents), options);
  } else {
    optimizer_.emplace(updated_, kind, options);
  }
}

// The gradient is not where the update runs, or of another type.
bool OptimizerState::needs_copies(const Gradients& gradients) const {
  if (plan_.optimizer_outside || buckets_.empty()) return plan_.optimizer_outside;
  return gradients.part(buckets_[0]).scalar_type() != updated_[0].scalar_type();
}

// One kernel reads every gradient as it is, and writes masters and weights.
bool OptimizerState::updates_at_once() const {
  return !plan_.optimizer_outside && optimizer_ && optimizer_->updates_all_types();
}

OptimizerState::Coming OptimizerState::start_gradient(std::size_t b, const Gradients& gradients) const {
  const at::Tensor grad = gradients.part(b);
  const at::ScalarType type = plan_.master ? at::kFloat : plan_.weights;
  Coming coming{plan_.optimizer_outside ? empty_outside(grad.numel(), grad.device(), type)
                                        : at::empty(grad.sizes(), grad.options().dtype(type)),
                {}};
  coming.copy.copy_(grad, /*non_blocking=*/true);
  if (!plan_.optimizer_outside || grad.is_cpu() || grad.is_meta()) return coming;
  const c10::impl::VirtualGuardImpl device(grad.device().type());
  coming.arrived.emplace(grad.device().type()).record(device.getStream(grad.device()));
  return coming;
}

void OptimizerState::update_copy(std::size_t i, const Gradients& gradients, double coefficient) {
  std::optional<memory::HostScope> host;  // the update's temporaries lie where it runs
  if (plan_.optimizer_outside) host.emplace();
  Coming coming = std::exchange(next_, {});
  if (!coming.copy.defined()) coming = start_gradient(buckets_[i], gradients);
  if (plan_.optimizer_outside && i + 1 < buckets_.size()) next_ = start_gradient(buckets_[i + 1], gradients);
  if (coming.arrived) coming.arrived->synchronize();
  if (coefficient != 1) coming.copy.mul_(coefficient);
  update_one(i, coming.copy);
}

void OptimizerState::update_one(std::size_t i, const at::Tensor& grad) {
  if (file_) return file_->update(i, grad);
  if (paged_) return paged_->update(i, grad);
  if (adafactor_) return adafactor_->update(i, grad);
  optimizer_->step_one(i, grad);
}

void OptimizerState::update_in_place(const Gradients& gradients, double coefficient) {
  std::vector<at::Tensor> grads;
  for (const std::size_t b : buckets_) {
    grads.push_back(gradients.part(b));
    if (coefficient != 1) grads.back().mul_(coefficient);
  }
  if (optimizer_) return optimizer_->step(grads);
  for (std::size_t i = 0; i < grads.size(); ++i) update_one(i, grads[i]);
}

void OptimizerState::update_at_once(const Gradients& gradients, double coefficient) {
  std::vector<at::Tensor> grads, weights;
  for (const std::size_t b : buckets_) {
    grads.push_back(gradients.part(b));
    if (plan_.master) weights.push_back(values_.part(b));
  }
  optimizer_->step(grads, coefficient, std::move(weights));
  for (const std::size_t b : buckets_) values_.start_spread(b);
  values_.finish_spread();
}

bool OptimizerState::update(const Gradients& gradients, double coefficient) {
  const at::NoGradGuard no_grad;
  if (updates_at_once()) {
    update_at_once(gradients, coefficient);
    return false;
  }
  const bool copies = needs_copies(gradients);
  if (file_) file_->begin_step();
  if (paged_) paged_->begin_step();
  if (adafactor_) adafactor_->begin_step();
  if (optimizer_ && copies) optimizer_->begin_step();
  if (!copies) update_in_place(gradients, coefficient);
  FileValues* const parts = values_.in_file();
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const std::size_t b = buckets_[i];
    if (parts != nullptr) {
      for (std::size_t j = i; j < std::min(i + 2, buckets_.size()); ++j)
        parts->expect(buckets_[j], file_->reads_parts());
      parts->arrive(b);
    }
    if (copies) update_copy(i, gradients, coefficient);
    if (plan_.apart() && !file_) values_.part(b).copy_(updated_[i], /*non_blocking=*/true);
    values_.start_spread(b);
    if (parts != nullptr) parts->save(b);
  }
  values_.finish_spread();
  if (parts != nullptr) parts->settle();
  return !copies;
}

std::vector<OptimizerState::Kept> OptimizerState::kept(std::size_t bucket) const {
  static constexpr const char* kMoments[] = {"mean", "square"};
  std::vector<Kept> kept;
  const auto found = std::ranges::find(buckets_, bucket);
  if (found == buckets_.end() || file_) return kept;
  const auto i = static_cast<std::size_t>(found - buckets_.begin());
  if (plan_.master) kept.push_back({"master", updated_[i]});
  for (std::size_t m = 0; paged_ && m < PagedStates::kMoments; ++m)
    kept.push_back({kMoments[m], paged_->moment(i, m)});
  for (std::size_t m = 0; optimizer_ && m < optimizer_->moments().size(); ++m)
    if (m < std::size(kMoments)) kept.push_back({kMoments[m], optimizer_->moments()[m][i]});
  return kept;
}

std::int64_t OptimizerState::bytes() const {
  if (plan_.optimizer_outside) return 0;
  std::int64_t sum = optimizer_ ? optimizer_->bytes() : adafactor_ ? adafactor_->bytes() : 0;
  if (plan_.master)
    for (const at::Tensor& master : updated_) sum += static_cast<std::int64_t>(master.nbytes());
  return sum;
}

}  // namespace sweep::parallel
