#include "orchestrator/run/failure_policy.h"

#include <algorithm>

namespace sweep::run {

LossDecision decide_loss(const Loss& loss, LossCounts before, const LossLimits& limits) {
  LossDecision decision;
  decision.counts = before;
  decision.cool_down = loss.host_known;
  if (loss.results > 0) return decision;
  decision.count_against_host = !loss.preempted;
  // Quarantine takes a known host out; the run goes on with the others.
  if (loss.host_known) return decision;
  if (loss.preempted && loss.had_time) {
    if (++decision.counts.preemptions >= limits.preemptions) decision.breaker = Breaker::kPreemptions;
    return decision;
  }
  // Some lost allocations among many that run do not condemn the machine.
  if (++decision.counts.losses >= std::max(limits.losses, loss.others_at_work + 1))
    decision.breaker = Breaker::kLosses;
  return decision;
}

AfterCancel decide_cancelled(bool asked, std::optional<EndCause> cause, i64 results) {
  if (asked) return AfterCancel::kNothing;
  return cause == EndCause::kNoTime && results > 0 ? AfterCancel::kFinish : AfterCancel::kReturned;
}

bool worth_another_allocation(double waiting_s, i64 nodes) {
  // Seconds of work for each node: several times what an allocation takes to end and another one to start.
  constexpr double kWorthAnother = 60;
  return waiting_s > kWorthAnother * static_cast<double>(nodes);
}

Outcome outcome_of_unfinished(bool run_ends, bool preempted, bool started) {
  return run_ends || preempted || !started ? Outcome::kCancelled : Outcome::kNodeLost;
}

}  // namespace sweep::run
