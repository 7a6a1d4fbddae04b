#include "bench_kernels/parallel/model_state.h"

#include <ATen/ATen.h>

#include <chrono>

namespace sweep::parallel {

using model::Parameters;

ModelState::ModelState(Parameters& parameters, const Mesh& mesh, const Trial& trial,
                       at::TensorOptions options)
    : parameters_(parameters), mesh_(mesh) {
  parameters.layout({options, trial.bucket_mb << 20, false, 1});
  parameters.allocate_gradients();
  parameters.set_observer([this](Parameters::Id id) { gradient_ready(id); });
  syncs_.resize(parameters.buckets().size());
  std::vector<at::Tensor> values;
  for (const auto& bucket : parameters.buckets()) values.push_back(bucket.values);
  optimizer_.emplace(std::move(values), optim::kind_from(trial.optimizer));
}

ModelState::~ModelState() {
  parameters_.set_observer(nullptr);
}

void ModelState::need(std::size_t, model::Pass) {}
void ModelState::done(std::size_t, model::Pass) {}

void ModelState::begin_step() {
  parameters_.forget_gradients();
  seen_.assign(parameters_.stacks().size(), false);
  next_to_launch_ = 0;
  last_backward_ = false;
  for (std::size_t b = 0; b < syncs_.size(); ++b) syncs_[b].missing = parameters_.buckets()[b].stacks.size();
}

void ModelState::begin_backward(bool last) {
  last_backward_ = last;
}

void ModelState::gradient_ready(Parameters::Id id) {
  if (!last_backward_ || seen_[id]) return;
  seen_[id] = true;
  --syncs_[parameters_.stacks()[id].bucket].missing;
  while (next_to_launch_ < syncs_.size() && syncs_[next_to_launch_].missing == 0) launch(next_to_launch_++);
}

void ModelState::launch(std::size_t b) {
  syncs_[b].pending =
      mesh_[Dimension::kData].all_reduce(parameters_.buckets()[b].grads, comm::Channel::Op::kAverage);
}

void ModelState::finish_gradients() {
  const auto start = std::chrono::steady_clock::now();
  TORCH_CHECK(next_to_launch_ == syncs_.size(), "backward left ", syncs_.size() - next_to_launch_,
              " gradient buckets incomplete");
  for (Sync& sync : syncs_) sync.pending.wait();
  exposed_wait_ns_ = (std::chrono::steady_clock::now() - start) / std::chrono::nanoseconds(1);
}

void ModelState::update() {
  std::vector<at::Tensor> grads;
  for (const auto& bucket : parameters_.buckets()) grads.push_back(bucket.grads);
  optimizer_->step(grads);
}

at::Tensor ModelState::gradient(const Parameters::Named& n) {
  return parameters_.gradient(n);
}

at::Tensor ModelState::value(const Parameters::Named& n) {
  return parameters_.value(n);
}

}  // namespace sweep::parallel
