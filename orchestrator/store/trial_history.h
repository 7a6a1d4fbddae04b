// The history of a trial that the rules of a sweep see, and their decision. The store reads the one and
// writes the other in the transaction that changes the trial; it decides nothing of it
// (orchestrator/run/retry_policy.h does).
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "schema/outcome.h"
#include "schema/sweep_options.h"

namespace sweep::store {

struct PastAttempt {
  i64 id = 0;
  // nullopt: it has not ended, and `state` says how far it is.
  std::optional<Outcome> outcome;
  State state = State::kPending;
  // Posted since the trial was last reopened; earlier ones use up no retry.
  bool fresh = true;
  bool operator==(const PastAttempt&) const = default;
};

struct TrialHistory {
  // The plan's decision, and the outcome of a trial that it does not admit.
  bool admitted = true;
  Outcome plan_outcome = Outcome::kPruned;
  // No longer in the plan.
  bool retired = false;
  // Attempts in the order of posting.
  std::vector<PastAttempt> attempts;
};

struct TrialDecision {
  State state = State::kPending;
  // The result that the trial shows; nullopt: nothing yet.
  std::optional<i64> final_attempt;
  std::optional<Outcome> outcome;
  bool operator==(const TrialDecision&) const = default;
};

using DecideTrial = std::function<TrialDecision(const TrialHistory&, const SweepOptions&)>;

}  // namespace sweep::store
