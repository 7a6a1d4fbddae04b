// HeldAllocation: one allocation as the run loop sees it: what was requested, what runs in it, how long it
// lasts. It knows neither store nor launcher.
#pragma once
#include <algorithm>
#include <optional>
#include <set>

#include "orchestrator/launch/launcher.h"
#include "orchestrator/run/allocation_state.h"
#include "orchestrator/run/clock.h"
#include "orchestrator/run/demand.h"
#include "orchestrator/run/excluded_hosts.h"
#include "orchestrator/run/in_flight.h"

namespace sweep::run {

struct HeldAllocation {
  launch::AllocationRequest request;
  InFlightAttempts attempts;
  AllocationState state = AllocationState::kRequested;
  // An earlier run requested it, and it held its nodes for so long then.
  bool adopted = false;
  double held_before_s = 0;
  // Attempts that ended here in this run, but for cancelled ones; node-seconds that the plan predicted for
  // them.
  i64 results = 0;
  double predicted_s = 0;
  // Attempts that this run posted to it.
  i64 posted = 0;
  // It took none: its agents were ready with so many seconds left, too few for each trial that waits.
  std::optional<double> too_short_s;
  // Host names by node; from its launcher, else from its agents.
  Hosts hosts;
  // Nodes that its agent gives no more work.
  std::set<i64> nodes_out;
  // Since when its nodes are held; when its scheduler ends it; seconds between the two.
  std::optional<Clock::Point> since, until;
  double total_s = 0;
  // Since when this run has seen it work.
  std::optional<Clock::Point> observed_since;

  // The last contact with its agents, or when it was given work after it had none; whether people were told of the silence since.
  std::optional<Clock::Point> last_contact;
  bool silence_told = false;

  void on_contact(Clock::Point now) { last_contact = now, silence_told = false; }
  // Whether any attempt that runs must have ended by now, and no line of its agents says so.
  bool overdue(Clock::Point now) const;
  void apply(AllocationEvent event) { state = next(state, event); }
  // Whether its agents run and nothing ends it yet.
  bool at_work() const { return state == AllocationState::kChecking || state == AllocationState::kServing; }
  bool waits_to_start() const {
    return state == AllocationState::kRequested || state == AllocationState::kChecked;
  }
  // Whether it was told to end, or ended.
  bool ends() const { return state >= AllocationState::kFinishing; }

  // How many attempts it keeps busy at once, in nodes (in slots where trials share a node).
  i64 width() const { return usable_nodes() * request.slots; }
  i64 usable_nodes() const { return std::max<i64>(1, request.nodes - static_cast<i64>(nodes_out.size())); }
  // Attempts to keep in the inbox beyond those at work: as many as end, at the rate so far, until the run
  // loop has learned of it and the next ones have arrived; at least `least`. Short trials that end together
  // all find a next one.
  i64 ahead(Clock::Point now, i64 least) const;
  // How much longer its trials take than was predicted.
  SlowdownEstimate slowdown(Clock::Point now) const;
  i64 gpus_each() const { return request.gpus > 0 ? request.gpus : request.slots; }
  // Since it started; nullopt: it has not.
  std::optional<double> held_seconds(Clock::Point now) const;
  // GPU-seconds that it has held.
  double gpu_seconds(Clock::Point now) const;
  // Seconds until its scheduler ends it; `otherwise` where nothing ends it.
  double seconds_left(Clock::Point now, double otherwise) const;
  // Started, and more than 90 s before its time limit (Slurm may signal up to a minute early).
  bool had_time(Clock::Point now) const;
  // Whether an attempt that takes its predicted time `slowdown` times over is likely to end before the
  // allocation does. A trial that is too long for any allocation is admitted if most of the time remains.
  bool has_time_for(const PlanEntry&, Clock::Point now, double slowdown) const;
};

}  // namespace sweep::run
