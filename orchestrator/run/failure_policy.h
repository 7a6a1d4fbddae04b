// Failure policy: what a lost allocation, or one whose agent cancels trials by itself, means for the run.
// Pure: plain facts in, typed decisions out. SweepRunner carries them out; docs/outcomes.md states them for
// users.
#pragma once
#include <optional>

#include "schema/outcome.h"
#include "schema/trial.h"

namespace sweep::run {

// One after another, none of which had a result. A result sets both to 0.
struct LossCounts {
  i64 losses = 0, preemptions = 0;
  bool operator==(const LossCounts&) const = default;
};
// Numbers of losses in a row at which the run ends.
struct LossLimits {
  i64 losses = 3, preemptions = 10;
};

// An allocation that ended before the run loop told it to, or with attempts unfinished.
struct Loss {
  // Preempted, cancelled from outside, or out of time.
  bool preempted = false;
  // It had started, and its time limit was not near.
  bool had_time = false;
  // The launcher knows which host was lost.
  bool host_known = false;
  // Attempts that ended in it.
  i64 results = 0;
  // Allocations that run now.
  i64 others_at_work = 0;
};

// Why the run ends.
enum class Breaker { kLosses, kPreemptions };

struct LossDecision {
  LossCounts counts;
  // The host that was lost is not requested for a short while.
  bool cool_down = false;
  // The loss counts against the host, or against the only host of the allocation (ExcludedHosts).
  bool count_against_host = false;
  std::optional<Breaker> breaker;
  bool operator==(const LossDecision&) const = default;
};
LossDecision decide_loss(const Loss&, LossCounts before, const LossLimits&);

// The consequence of an attempt that its agent cancelled.
enum class AfterCancel {
  // The run loop asked for it.
  kNothing,
  // The allocation's time is nearly up: it gets no more work.
  kFinish,
  // The agent is leaving and cancels whatever it gets: it gets no more work, and that counts as a loss.
  kReturned,
};
// asked: the run or the allocation ends. cause: by the agent; nullopt: it stated none. results: attempts that
// ended in the allocation before.
AfterCancel decide_cancelled(bool asked, std::optional<EndCause> cause, i64 results);

// Whether an allocation that lost a node ends once its running attempts have ended, so that another one gets every node
// that is there. waiting_s: node-seconds of the trials that wait. nodes: those that are left.
bool worth_another_allocation(double waiting_s, i64 nodes);

// The outcome of an attempt that its allocation left unfinished. One that had not started uses up no retry.
Outcome outcome_of_unfinished(bool run_ends, bool preempted, bool started);

}  // namespace sweep::run
