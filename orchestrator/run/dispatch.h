// Dispatch: fills the inboxes of allocations with attempts, in the order of the plan, or as the sweep's
// strategy chooses. Each attempt is committed in the store before its line is appended to the inbox.
#pragma once

#include "orchestrator/run/allocations.h"
#include "orchestrator/run/leaders.h"
#include "orchestrator/run/pending_queue.h"

namespace sweep::run {

// Whether one more attempt goes into an inbox. queued: nodes of the attempts in it, running ones included.
// width: nodes that can be busy. ahead: attempts to keep queued beyond those.
enum class Fill {
  kYes,
  kNo,
  // While it has no more than its share of what is left to do (within_share).
  kItsShare,
};
Fill choose_fill(i64 queued, i64 width, i64 ahead, bool only_allocation);
// No node is idle while trials queue elsewhere. work: nodes of all trials that wait or are queued, width of
// all allocations that can take them.
bool within_share(i64 queued, i64 width, i64 work, i64 all_width);

// The attempt that the agent gets for a trial; its number comes from the store.
Expected<Attempt> attempt_for(const PlanEntry&, const Settings&, double slowdown);

class Dispatch {
 public:
  Dispatch(const RunContext& context, Allocations& allocations, ExcludedHosts& hosts)
      : context_(context),
        allocations_(allocations),
        hosts_(hosts),
        guide_(context),
        leaders_(context),
        queue_(context.store, context.settings.sweep, guide_.chooses() ? &guide_ : nullptr) {}

  // Before the first trial: what the results that are there already say of those that wait.
  Expected<void> begin() { return guide_.begin(); }
  // Applies what a result says of the trials that wait.
  Expected<void> learn(const FinishedAttempt&);
  // The store has a new answer for a trial, or it waits again.
  Expected<void> changed(const std::string& trial_id);
  // Posts what fits while the run goes on. An allocation without any attempt is told to end.
  Expected<void> fill(HeldAllocation&, bool run_ends);
  Expected<void> fill_all(bool run_ends);
  PendingQueue& queue() { return queue_; }

 private:
  // Whether another allocation at work gets this trial, which failed on the host of this one.
  bool goes_elsewhere(const HeldAllocation&, const PlanEntry&) const;
  Expected<bool> wants_more(const HeldAllocation&);
  Expected<void> finish_idle(HeldAllocation&, bool run_ends);
  Expected<void> rest_host(const HeldAllocation&);
  Expected<bool> post_next(HeldAllocation&);
  Expected<void> post(HeldAllocation&, const PlanEntry&, double slowdown);

  const RunContext& context_;
  Allocations& allocations_;
  ExcludedHosts& hosts_;
  Guide guide_;
  Leaders leaders_;
  PendingQueue queue_;
};

}  // namespace sweep::run
