#include "bench_kernels/parallel/gradients.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "bench_kernels/parallel/flat.h"

namespace sweep::parallel {

using comm::Channel;
using model::Parameters;

namespace {

std::vector<std::pair<std::int64_t, std::int64_t>> gaps_of(const Parameters& parameters,
                                                           const model::Bucket& bucket) {
  std::vector<std::pair<std::int64_t, std::int64_t>> gaps;
  std::int64_t at = 0;
  for (const Parameters::Id id : bucket.stacks) {  // stacks are in the order of their offsets
    const auto& stack = parameters.stacks()[id];
    if (stack.offset > at) gaps.emplace_back(at, stack.offset - at);
    at = stack.offset + stack.elements();
  }
  if (bucket.elements > at) gaps.emplace_back(at, bucket.elements - at);
  return gaps;
}

}  // namespace

Gradients::Gradients(Parameters& parameters, const StatePlan& plan, const Values& values)
    : parameters_(parameters), plan_(plan), values_(values) {
  for (const auto& bucket : parameters.buckets()) {
    State& state = states_.emplace_back();
    state.frozen = bucket.frozen;
    if (!bucket.frozen) state.gaps = gaps_of(parameters, bucket);
  }
  for (std::size_t group = 0; group < parameters.groups(); ++group)
    read_by_.push_back(parameters.buckets_read_by(group));
}

void Gradients::begin_step() {
  last_ = false;
  for (std::size_t b = 0; b < states_.size(); ++b) {
    parameters_.buckets()[b].grads.reset();
    states_[b].shard.reset();
  }
  begin_round();
}

void Gradients::begin_round() {
  settle_flight();
  seen_.assign(parameters_.stacks().size(), false);
  for (std::size_t b = 0; b < states_.size(); ++b)
    states_[b].missing = states_[b].frozen ? 0 : parameters_.buckets()[b].stacks.size();
}

void Gradients::begin_backward(bool last) {
  // The bucket under way belongs to the micro-batch before, which is not the last.
  if (plan_.gradients_sharded()) begin_round();
  last_ = last;
}

void Gradients::need(std::size_t group, model::Pass pass) {
  // A pass that writes no gradient holds none; one inside of a backward leaves what is under way.
  if (pass == model::Pass::kRecompute) return;
  if (pass == model::Pass::kForward || pass == model::Pass::kBackwardInput || pass == model::Pass::kEvaluate)
    return settle_flight();
  for (const std::size_t b : read_by_[group]) make_room(b);
}

void Gradients::make_room(std::size_t b) {
  auto& bucket = parameters_.buckets()[b];
  if (bucket.frozen || bucket.grads.defined()) return;
  bucket.grads = at::empty({bucket.elements}, bucket.values.options().dtype(plan_.gradients));
  for (const auto& [offset, size] : states_[b].gaps) bucket.grads.narrow(0, offset, size).zero_();
  parameters_.gradients().forget(bucket);
}

void Gradients::ready(Parameters::Id id) {
  if (!(last_ || plan_.gradients_sharded()) || seen_[id]) return;
  seen_[id] = true;
  const std::size_t b = parameters_.stacks()[id].bucket;
  if (--states_[b].missing > 0) return;
  plan_.gathers_after_block ? waiting_.push_back(b) : launch(b);
}

void Gradients::done() {
  for (const std::size_t b : std::exchange(waiting_, {})) launch(b);
}

void Gradients::launch(std::size_t b) {
  State& s = states_[b];
  const at::Tensor& grads = parameters_.buckets()[b].grads;
  const BucketPeers& peers = values_.peers(b);
  if (plan_.gradients_sharded()) {
    settle_flight();
    flight_ = b;
    at::Tensor& into = s.shard.defined() ? s.addition : s.shard;
    into = at::empty({grads.numel() / peers.shard->size()}, grads.options());
    s.reduction = peers.shard->reduce_scatter(grads, into, Channel::Op::kAverage);
  } else if (plan_.zero > 0) {
    s.reduction = peers.shard->reduce_scatter(grads, part(b), Channel::Op::kAverage);
  } else {
    s.reduction = peers.copies->all_reduce(grads, Channel::Op::kAverage);
  }
  s.reducing = true;
}

void Gradients::settle_flight() {
  if (flight_) settle(*flight_);
  flight_.reset();
}

// Ends the reduction over the shard group; the copies' may start.
void Gradients::settle(std::size_t b) {
  State& s = states_[b];
  if (!s.reducing) return;
  s.reducing = false;
  const bool waits = watch_ && s.reduction.under_way();
  if (waits) watch_(true);
  s.reduction.wait();
  if (waits) watch_(false);
  if (plan_.gradients_sharded()) {
    if (s.addition.defined()) s.shard.add_(s.addition);
    s.addition.reset();
    parameters_.buckets()[b].grads.reset();
  }
  if (plan_.zero > 0 && last_)
    s.reduction = values_.peers(b).copies->all_reduce(part(b), Channel::Op::kAverage);
}

void Gradients::finish() {
  const auto left = std::ranges::count_if(states_, [](const State& s) { return s.missing > 0; });
  TORCH_CHECK(left == 0, "backward left ", left, " gradient buckets incomplete");
  done();
  settle_flight();
  for (std::size_t b = 0; b < states_.size(); ++b) settle(b);
  for (std::size_t b = 0; b < states_.size(); ++b) {
    if (states_[b].frozen) continue;
    states_[b].reduction.wait();
    const BucketPeers& peers = values_.peers(b);
    if (peers.scale != 1) part(b).mul_(peers.scale);
  }
  for (std::size_t b = 0; b < states_.size(); ++b)
    for (Channel* sum : states_[b].frozen ? std::vector<Channel*>{} : values_.peers(b).sums)
      sum->all_reduce(part(b), Channel::Op::kSum).wait();
}

at::Tensor Gradients::part(std::size_t b) const {
  if (plan_.gradients_sharded()) return states_[b].shard;
  const at::Tensor& grads = parameters_.buckets()[b].grads;
  const Channel& shard = *values_.peers(b).shard;
  return grads.defined() ? share(grads, shard.rank(), shard.size()) : grads;
}

at::Tensor Gradients::whole(std::size_t b) const {
  const at::Tensor mine = part(b);
  Channel& shard = *values_.peers(b).shard;
  if (shard.alone() || !mine.defined()) return mine;
  const at::Tensor all = at::empty({parameters_.buckets()[b].elements}, mine.options());
  shard.all_gather(mine, all).wait();
  return all;
}

std::vector<at::Tensor> Gradients::kept() const {
  std::vector<at::Tensor> all;
  for (std::size_t b = 0; b < states_.size(); ++b) {
    const at::Tensor& kept = plan_.gradients_sharded() ? states_[b].shard : parameters_.buckets()[b].grads;
    if (kept.defined()) all.push_back(kept);
  }
  return all;
}

}  // namespace sweep::parallel
