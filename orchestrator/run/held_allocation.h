// HeldAllocation: one allocation as the run loop sees it: what was asked for, what is under way in it, how long it
// lasts. It knows neither store nor launcher.
#pragma once
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "orchestrator/launch/launcher.h"
#include "orchestrator/run/clock.h"
#include "orchestrator/run/demand.h"
#include "orchestrator/run/in_flight.h"
#include "orchestrator/run/quarantine.h"

namespace sweep::run {

struct HeldAllocation {
  launch::AllocationRequest request;
  InFlightAttempts flights;
  bool started = false, finishing = false;
  bool joined = false;       // the records of its nodes are here
  bool adopted = false;      // of an earlier run
  double held_before_s = 0;  // by that run's word
  bool gave_back = false;    // its agent cancelled what nobody here asked it to: it takes no more
  i64 landed = 0;
  Hosts hosts;                          // that its launcher or its agents told of
  std::optional<Clock::Point> since;    // its nodes are held
  std::optional<Clock::Point> until;    // its scheduler ends it
  double lasts_s = 0;                   // from since to until
  std::optional<Clock::Point> watched;  // this run has seen it work
  double foretold_s = 0;                // node-seconds that the plan foretold of what has landed since

  // Trials it keeps busy at once, in nodes (in slots where trials share a node).
  i64 width() const { return request.nodes * request.slots; }
  // Attempts to keep in the inbox beyond those: what ends, at the pace so far, until word of it has come and the
  // next ones are there; short trials that end together must all find a next one.
  i64 ahead(Clock::Point now, i64 least) const {
    constexpr double kRoundTrip = 1;  // seconds, generously
    if (!since) return least;
    const double held = std::max(kRoundTrip, std::chrono::duration<double>(now - *since).count());
    const double ends =
        std::min(static_cast<double>(landed) / held * kRoundTrip, static_cast<double>(width()));
    return std::max(least, static_cast<i64>(std::ceil(ends)));
  }
  SlowdownEstimate pace(Clock::Point now) const {
    if (!watched) return {};
    return {std::chrono::duration<double>(now - *watched).count() * static_cast<double>(width()),
            foretold_s + flights.seconds()};
  }
  i64 gpus_each() const { return request.gpus > 0 ? request.gpus : request.slots; }
  double gpu_seconds(Clock::Point now) const {
    if (!since) return 0;
    return std::chrono::duration<double>(now - *since).count() *
           static_cast<double>(request.nodes * gpus_each());
  }
  double seconds_left(Clock::Point now, double otherwise) const {
    return until ? std::chrono::duration<double>(*until - now).count() : otherwise;
  }
  // It has begun, and its scheduler's word that the time is up is not due: Slurm may send that a minute early.
  bool had_time(Clock::Point now) const {
    constexpr double kWordOfTheEnd = 90;
    return started && seconds_left(now, 2 * kWordOfTheEnd) > kWordOfTheEnd;
  }
  // Whether an attempt of so many predicted seconds, taken `pace` times, is likely to end before the allocation
  // does. What would not fit a fresh one either is let in as long as most of it is left.
  bool has_time_for(const PlanEntry& entry, Clock::Point now, double pace) const {
    constexpr double kSlack = 2, kOverhead = 10, kMost = 0.8;
    const double queued = flights.seconds() / static_cast<double>(request.nodes);
    const double need = kSlack * pace * (queued + entry.predicted.seconds.value_or(0)) + kOverhead;
    return seconds_left(now, need) >= std::min(need, kMost * lasts_s);
  }
};

}  // namespace sweep::run
