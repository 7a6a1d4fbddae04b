#include "orchestrator/run/held_allocation.h"

#include <algorithm>
#include <cmath>

namespace sweep::run {
namespace {

double seconds_between(Clock::Point from, Clock::Point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

i64 HeldAllocation::ahead(Clock::Point now, i64 least) const {
  // Seconds from the end of an attempt to the arrival of the next one; generous.
  constexpr double kRoundTrip = 1;
  if (!since) return least;
  const double held = std::max(kRoundTrip, seconds_between(*since, now));
  const double ends =
      std::min(static_cast<double>(results) / held * kRoundTrip, static_cast<double>(width()));
  return std::max(least, static_cast<i64>(std::ceil(ends)));
}

SlowdownEstimate HeldAllocation::slowdown(Clock::Point now) const {
  if (!observed_since) return {};
  return {seconds_between(*observed_since, now) * static_cast<double>(width()),
          predicted_s + attempts.seconds()};
}

std::optional<double> HeldAllocation::held_seconds(Clock::Point now) const {
  if (!since) return {};
  return seconds_between(*since, now);
}

double HeldAllocation::gpu_seconds(Clock::Point now) const {
  return held_seconds(now).value_or(0) * static_cast<double>(request.nodes * gpus_each());
}

double HeldAllocation::seconds_left(Clock::Point now, double otherwise) const {
  return until ? seconds_between(now, *until) : otherwise;
}

bool HeldAllocation::overdue(Clock::Point now) const {
  constexpr double kMargin = 60;
  if (!last_contact || attempts.size() == 0 || seconds_between(*last_contact, now) <= kMargin) return false;
  return seconds_between(*last_contact, now) > attempts.longest_s() + kMargin;
}

bool HeldAllocation::had_time(Clock::Point now) const {
  constexpr double kSignalBeforeEnd = 90;
  return since && seconds_left(now, 2 * kSignalBeforeEnd) > kSignalBeforeEnd;
}

bool HeldAllocation::has_time_for(const PlanEntry& entry, Clock::Point now, double slowdown) const {
  constexpr double kSlack = 2, kOverhead = 10, kMost = 0.8;
  const double queued = attempts.seconds() / static_cast<double>(request.nodes);
  const double need = kSlack * slowdown * (queued + entry.predicted.seconds.value_or(0)) + kOverhead;
  return seconds_left(now, need) >= std::min(need, kMost * total_s);
}

}  // namespace sweep::run
