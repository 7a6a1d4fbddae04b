#include "worker/rank/short_steps.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <type_traits>
#include <utility>

namespace sweep::rank {
namespace {

constexpr double kStraight = 0.005;

// The value at `steps` distances behind `most`.
i64 beyond(i64 more, i64 most, double steps) {
  return most + std::llround(static_cast<double>(most - more) * steps);
}

step::StepTimes beyond(const step::StepTimes& more, const step::StepTimes& most, double steps) {
  step::StepTimes out = most;
  for (const auto part : {&step::StepTimes::step_ns, &step::StepTimes::forward_ns,
                          &step::StepTimes::backward_ns, &step::StepTimes::optimizer_ns})
    out.*part = beyond(more.*part, most.*part, steps);
  if (out.exposed_comm_ns)
    out.exposed_comm_ns = beyond(more.exposed_comm_ns.value_or(0), *most.exposed_comm_ns, steps);
  return out;
}

// f(a counter of the sum, the same counter of the other), for each counter that the sum has.
template <class F>
void with_counters(PhantomCounts& sum, const PhantomCounts& other, F&& f) {
  for_each_member(Of<PhantomCounts>(), [&](const auto&, auto member) {
    if constexpr (std::is_same_v<decltype(member), std::optional<i64> PhantomCounts::*>)
      if (sum.*member) sum.*member = f(*(sum.*member), (other.*member).value_or(0));
  });
  CollectiveCounts all = std::exchange(sum.collectives, std::nullopt).value_or(CollectiveCounts());
  const CollectiveCounts none;
  const CollectiveCounts& others = other.collectives ? *other.collectives : none;
  for (auto& [name, count] : all) {
    const auto found = others.find(name);
    const CollectiveCount of = found == others.end() ? CollectiveCount() : found->second;
    count = {f(count.count, of.count), f(count.bytes, of.bytes)};
  }
  sum.collectives = std::move(all);
}

}  // namespace

PhantomCounts difference(const PhantomCounts& before, const PhantomCounts& after) {
  PhantomCounts out = after;
  out.not_answered.clear();
  with_counters(out, before, [](i64 now, i64 was) { return now - was; });
  return out;
}

SeenStep on_line(const shape::ShortSteps& sizes, const SeenStep& more, const SeenStep& most, i64 micros) {
  const double steps =
      static_cast<double>(micros - sizes.most) / static_cast<double>(sizes.most - sizes.more);
  SeenStep out{beyond(more.times, most.times, steps), most.counts, most.sent};
  if (out.counts && more.counts)
    with_counters(*out.counts, *more.counts,
                  [&](i64 at_most, i64 at_more) { return beyond(at_more, at_most, steps); });
  for (std::size_t i = 0; i < std::min(out.sent.size(), more.sent.size()); ++i) {
    out.sent[i].calls = beyond(more.sent[i].calls, out.sent[i].calls, steps);
    out.sent[i].bytes = beyond(more.sent[i].bytes, out.sent[i].bytes, steps);
  }
  return out;
}

double bend(const step::StepTimes& few, const step::StepTimes& more, const step::StepTimes& most) {
  const auto first = static_cast<double>(more.step_ns - few.step_ns),
             second = static_cast<double>(most.step_ns - more.step_ns);
  return std::abs(second - first) / std::max(1.0, std::abs(second));
}

ShortStepRunner::ShortStepRunner(const shape::ShortSteps& sizes, i64 micros, i64 warmup, bool begins_whole,
                                 std::function<SeenStep(i64)> run, std::function<bool(bool)> any_rank)
    : sizes_(sizes),
      micros_(micros),
      warmup_(warmup),
      begins_whole_(begins_whole),
      run_(std::move(run)),
      any_rank_(std::move(any_rank)) {}

SeenStep ShortStepRunner::step() {
  if (std::exchange(begins_whole_, false) && warmup_-- > 0) return run_(micros_);
  if (warmup_-- > 0) return run_(sizes_.most);
  if (bent_.value_or(false)) return run_(micros_);
  const SeenStep few = run_(sizes_.few), more = run_(sizes_.more), most = run_(sizes_.most);
  if (!bent_) {
    bend_ = bend(few.times, more.times, most.times);
    bent_ = any_rank_(bend_ > kStraight);
    if (*bent_) return run_(micros_);
  }
  return on_line(sizes_, more, most, micros_);
}

std::string ShortStepRunner::said() const {
  const std::string ran = std::to_string(sizes_.few) + ", " + std::to_string(sizes_.more) + " and " +
                          std::to_string(sizes_.most) + " micro-steps";
  char percent[32];
  std::snprintf(percent, sizeof percent, "%.2f %%", 100 * bend_);
  if (bent_.value_or(false))
    return "whole: steps of " + ran + " do not lie on a line (" + percent + " on this rank)";
  return "on the line through steps of " + ran + ", which bends by " + percent;
}

std::optional<ShortStepRunner> short_steps_of(const Attempt& attempt, std::function<SeenStep(i64)> run,
                                              std::function<bool(bool)> any_rank) {
  const Trial& t = attempt.trial;
  const auto sizes = shape::short_steps(shape::Pipeline::of(t));
  if (!attempt.is_rehearsal() || !sizes || t.cuda_graph) return std::nullopt;
  return ShortStepRunner(*sizes, t.grad_accum, attempt.measure.warmup_steps, t.pp > 1, std::move(run),
                         std::move(any_rank));
}

}  // namespace sweep::rank
