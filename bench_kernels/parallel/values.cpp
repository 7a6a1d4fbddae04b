#include "bench_kernels/parallel/values.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "bench_kernels/parallel/flat.h"

namespace sweep::parallel {

using model::Parameters;
using model::Pass;

Values::Values(Parameters& parameters, const StatePlan& plan, const Mesh& mesh, comm::Channel& alone,
               at::TensorOptions options)
    : parameters_(parameters), plan_(plan), mesh_(mesh), alone_(alone) {
  const at::NoGradGuard no_grad;
  if (plan.parameters_in_file) file_.emplace(options.device());
  Parameters::Layout layout{
      options, plan.bucket_bytes, plan.copies, bucket_multiple(plan, mesh), plan.products_staged, {}};
  layout.place = [this](const model::Bucket& bucket) { place(bucket); };
  parameters.layout(layout);
  for (std::size_t group = 0; group < parameters.groups(); ++group) {
    read_by_.push_back(parameters.buckets_read_by(group));
    for (const std::size_t b : read_by_.back()) ++states_[b].readers;
  }
}

// Each rank draws what it keeps and nothing else.
void Values::place(const model::Bucket& bucket) {
  const std::size_t b = peers_.size();
  peers_.push_back(peers_of(bucket.role, plan_, mesh_, alone_));
  State& state = states_.emplace_back();
  const auto drawn = [&](const comm::Channel& group, bool outside, at::ScalarType type) {
    const std::int64_t size = bucket.elements / group.size();
    if (bucket.quantized) type = at::kByte;
    at::Tensor share = outside ? empty_outside(size, bucket.values.device(), type)
                               : at::empty({size}, bucket.values.options().dtype(type));
    parameters_.fill(bucket, share, group.rank() * size);
    return share;
  };
  state.copied = plan_.copies_of(bucket);
  if (state.copied) {
    release(bucket.values);
    state.lasting = drawn(gatherers(b), plan_.parameters_outside, plan_.weights);
    if (file_) file_->keep(state.lasting);
  } else {
    parameters_.fill(bucket, bucket.values);
    state.lasting = bucket.values;
  }
  masters_.push_back(plan_.master && !bucket.frozen
                         ? drawn(*peers_[b].shard, plan_.optimizer_outside, at::kFloat)
                         : at::Tensor());
}

comm::Channel& Values::gatherers(std::size_t b) const {
  return plan_.values_sharded() ? *peers_[b].shard : alone_;
}

// The file is read for buckets that have no copy yet.
void Values::expect(std::size_t group) {
  for (const std::size_t b : read_by_[group])
    if (states_[b].copied && states_[b].copy == Copy::kAbsent) file_->expect(b);
}

void Values::take_from_file(std::size_t b) {
  file_->expect(b);
  const bool watched = watch_ && file_->under_way(b);
  if (watched) watch_(true);
  file_->arrive(b);
  if (watched) watch_(false);
}

void Values::start_copy(std::size_t b) {
  State& s = states_[b];
  if (!s.copied || s.copy != Copy::kAbsent) return;
  const at::Tensor& values = parameters_.buckets()[b].values;
  comm::Channel& g = gatherers(b);
  if (file_) take_from_file(b);
  allocate(values);
  at::Tensor own = share(values, g.rank(), g.size());
  own.copy_(s.lasting, /*non_blocking=*/true);
  if (file_) file_->leave(b);
  s.gather = g.all_gather(own, values);
  s.copy = Copy::kUnderWay;
}

void Values::drop_copy(std::size_t b) {
  if (!states_[b].copied) return;
  release(parameters_.buckets()[b].values);
  states_[b].copy = Copy::kAbsent;
}

void Values::wait_for(comm::Pending& gather) {
  const bool watched = watch_ && gather.under_way();
  if (watched) watch_(true);
  gather.wait();
  if (watched) watch_(false);
}

void Values::need(std::size_t group, Pass pass) {
  if (!plan_.copies || pass == Pass::kBackwardWeights) return;
  const bool again = pass == Pass::kRecompute;
  const bool forward = again || pass == Pass::kForward || pass == Pass::kEvaluate;
  const i64 ahead = forward ? plan_.prefetch_forward : plan_.ahead_in_backward;
  if (!forward) backward_at_ = group;
  // A forward again ends at the group whose backward waits for it.
  const auto last = static_cast<i64>(again ? backward_at_ : read_by_.size() - 1),
             here = static_cast<i64>(group);
  // A file is read for one group more than are gathered.
  for (i64 i = 0; i <= ahead + 1; ++i) {
    const i64 next = forward ? here + i : here - i;
    if (next < 0 || next > last) break;
    if (file_) expect(static_cast<std::size_t>(next));
  }
  for (i64 i = 0; i <= ahead; ++i) {
    const i64 next = forward ? here + i : here - i;
    if (next < 0 || next > last) break;
    for (const std::size_t b : read_by_[static_cast<std::size_t>(next)]) start_copy(b);
  }
  for (const std::size_t b : read_by_[group]) {
    State& s = states_[b];
    wait_for(s.gather);
    s.copy = Copy::kThere;
    if (pass == Pass::kForward && kept(s)) ++s.in_use;
  }
}

// After a forward again the copies stay: the group's own backward comes soon.
void Values::done(std::size_t group, Pass pass) {
  if (!plan_.copies || pass == Pass::kBackwardWeights || pass == Pass::kRecompute) return;
  const bool over = pass == Pass::kBackward || pass == Pass::kBackwardInput;
  for (const std::size_t b : read_by_[group]) {
    State& s = states_[b];
    if (pass != Pass::kEvaluate && kept(s) && (!over || --s.in_use > 0)) continue;
    drop_copy(b);
  }
  if (!over || !plan_.gathers_after_block) return;
  for (std::size_t i = 1; i <= std::min(group, static_cast<std::size_t>(plan_.prefetch_backward)); ++i)
    for (const std::size_t b : read_by_[group - i]) start_copy(b);
}

at::Tensor Values::part(std::size_t b) const {
  const at::Tensor& lasting = states_[b].lasting;
  if (plan_.values_sharded()) return lasting;
  return share(lasting, peers_[b].shard->rank(), peers_[b].shard->size());
}

void Values::start_spread(std::size_t b) {
  if (plan_.values_sharded()) return;
  states_[b].spread = peers_[b].shard->all_gather(part(b), states_[b].lasting);
}

void Values::finish_spread() {
  for (State& s : states_) wait_for(s.spread);
}

at::Tensor Values::whole(std::size_t b) const {
  const at::Tensor& lasting = states_[b].lasting;
  const at::Tensor& values = parameters_.buckets()[b].values;
  if (!states_[b].copied) return lasting;
  if (file_) file_->expect(b), file_->arrive(b);
  at::Tensor all = at::empty({values.numel()}, values.options().dtype(lasting.scalar_type()));
  comm::Channel& g = gatherers(b);
  at::Tensor own = share(all, g.rank(), g.size());
  own.copy_(lasting);
  if (file_) file_->leave(b);
  g.all_gather(own, all).wait();
  return all;
}

std::int64_t Values::bytes() const {
  std::int64_t sum = 0;
  if (plan_.parameters_outside) return sum;
  for (const State& s : states_) sum += static_cast<std::int64_t>(s.lasting.nbytes());
  return sum;
}

std::vector<std::size_t> Values::trained() const {
  std::vector<std::size_t> trained;
  for (std::size_t b = 0; b < states_.size(); ++b)
    if (!parameters_.buckets()[b].frozen) trained.push_back(b);
  return trained;
}

std::int64_t Values::shared_elements(bool frozen) const {
  std::int64_t sum = 0;
  for (std::size_t b = 0; b < states_.size(); ++b)
    if (states_[b].readers > 1 && parameters_.buckets()[b].frozen == frozen)
      sum += parameters_.buckets()[b].elements;
  return sum;
}

}  // namespace sweep::parallel
