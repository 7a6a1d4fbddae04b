// Retry policy: whether a trial is run again, and which of its attempts is the final one. Pure: the history
// of a trial and the options of its sweep in, a decision out. The store calls it in the transaction that
// stores a result. docs/outcomes.md states the rules for users.
#pragma once
#include <filesystem>
#include <memory>

#include "base/expected.h"
#include "orchestrator/store/store.h"
#include "orchestrator/store/trial_history.h"

namespace sweep::run {

// Tries beyond the first one before the outcome stands.
struct RetryLimits {
  i64 crash = 1, hang = 0, timeout = 0;
  // After a lost node.
  i64 infra = 3;
};
// Imported sweeps get no retries: nothing of them runs here.
RetryLimits retry_limits(const SweepOptions&);

store::TrialDecision decide_trial(const store::TrialHistory&, const SweepOptions&);

// Opens a database that this policy decides in. Who only reads may open it with Store::open.
Expected<std::unique_ptr<store::Store>> open_store(const std::filesystem::path&, store::Mode);

}  // namespace sweep::run
