// Allocations: those that a run has requested or adopted, until they end. It requests them, tells them to
// end, records their start and end in the store, and counts the GPU time that they held. What is requested
// and what runs in them is decided elsewhere.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "orchestrator/run/held_allocation.h"
#include "orchestrator/run/run_context.h"

namespace sweep::run {

class Allocations {
 public:
  explicit Allocations(const RunContext& context) : context_(context) {}

  // Adopts or closes what earlier runs left open, and counts the time that they held.
  Expected<void> adopt_earlier();
  // Error: the launcher refused, and the allocation is closed in the store.
  Expected<void> request(const Wanted&, std::vector<std::string> avoid);
  // Its nodes are held from now on.
  Expected<void> start(HeldAllocation&, const launch::Started&);
  // No more attempts; now: running ones are ended too.
  void finish(HeldAllocation&, bool now);
  void finish_all(bool now);
  // Ends the allocations whose only node is on the host.
  void finish_on(const std::string& host);
  void kill_all();
  // Takes out one that ended. REQUIRES: it is held.
  HeldAllocation take(const std::string& id);
  // Closes in the store what take() gave.
  Expected<void> close(const HeldAllocation&, const std::string& reason);

  // Tells people once of each allocation whose attempts must have ended and that says nothing.
  Expected<void> note_overdue();

  // Null: not held. The result is valid until the next request() or take().
  HeldAllocation* find(const std::string& id);
  const std::map<std::string, HeldAllocation>& all() const { return held_; }
  std::vector<std::string> ids() const;
  bool empty() const { return held_.empty(); }

  // Nodes of the held allocations, and how many of these have work.
  i64 nodes() const;
  i64 at_work() const;
  std::vector<Capacity> capacities() const;
  bool may_request_more() const;
  // GPU-seconds of all runs of the sweep, until now.
  double gpu_seconds() const;
  // The slowdown over all allocations of this run: 10 if trials take ten times as long as predicted.
  double slowdown() const;

 private:
  launch::AllocationRequest request_for(const store::AllocationRow&, const Wanted&,
                                        std::vector<std::string> avoid) const;

  const RunContext& context_;
  std::map<std::string, HeldAllocation> held_;
  // Sums over allocations that have ended: of all runs, and of this one.
  double ended_gpu_s_ = 0;
  SlowdownEstimate ended_slowdown_;
};

}  // namespace sweep::run
