#include "orchestrator/run/retry_policy.h"

#include <algorithm>

namespace sweep::run {
namespace {

struct Summary {
  // How far the attempt is that has not ended.
  State under_way = State::kPending;
  // Fresh attempts that the trial itself ended, and that a lost node ended.
  i64 own = 0, lost = 0;
  std::optional<i64> last_lost;
  // The last attempt that the trial itself ended.
  const store::PastAttempt* last_own = nullptr;
};

Summary summary_of(const store::TrialHistory& trial) {
  Summary out;
  for (const auto& attempt : trial.attempts) {
    if (!attempt.outcome) {
      out.under_way = std::max(out.under_way, attempt.state);
    } else if (!is_infrastructure(*attempt.outcome)) {
      out.own += attempt.fresh;
      out.last_own = &attempt;
    } else if (*attempt.outcome == Outcome::kNodeLost) {
      out.lost += attempt.fresh;
      out.last_lost = attempt.id;
    }
  }
  return out;
}

// Whether an outcome is final after so many attempts that ended by the trial's own doing.
bool is_final(Outcome outcome, i64 attempts, const RetryLimits& limits) {
  if (outcome == Outcome::kCrash) return attempts > limits.crash;
  if (outcome == Outcome::kHang) return attempts > limits.hang;
  if (outcome == Outcome::kTimeout) return attempts > limits.timeout;
  return true;
}

State state_of(const store::TrialHistory& trial, const Summary& past, const RetryLimits& limits) {
  if (trial.retired) return State::kRetired;
  if (past.under_way != State::kPending) return past.under_way;
  const bool answered =
      past.last_own && past.last_own->fresh && is_final(*past.last_own->outcome, past.own, limits);
  if (answered || past.lost > limits.infra || !trial.admitted) return State::kFinished;
  return State::kPending;
}

}  // namespace

RetryLimits retry_limits(const SweepOptions& options) {
  if (options.imported) return {0, 0, 0, 0};
  RetryLimits limits;
  limits.crash = options.retries_crash.value_or(limits.crash);
  limits.hang = options.retries_hang.value_or(limits.hang);
  limits.timeout = options.retries_timeout.value_or(limits.timeout);
  limits.infra = options.retries_infra.value_or(limits.infra);
  return limits;
}

store::TrialDecision decide_trial(const store::TrialHistory& trial, const SweepOptions& options) {
  const RetryLimits limits = retry_limits(options);
  const Summary past = summary_of(trial);
  store::TrialDecision decision;
  decision.state = state_of(trial, past, limits);
  // The last row of an imported trial counts, also one that says that it was never run.
  const bool unmeasured = options.imported && !trial.admitted;
  if (past.last_own && !unmeasured) {
    decision.final_attempt = past.last_own->id, decision.outcome = past.last_own->outcome;
  } else if (past.lost > limits.infra) {
    decision.final_attempt = past.last_lost, decision.outcome = Outcome::kNodeLost;
  } else if (!trial.admitted) {
    decision.outcome = trial.plan_outcome;
  }
  return decision;
}

Expected<std::unique_ptr<store::Store>> open_store(const std::filesystem::path& path, store::Mode mode) {
  store::StoreDependencies dependencies;
  dependencies.decide_trial = decide_trial;
  return store::Store::open(path, mode, std::move(dependencies));
}

}  // namespace sweep::run
