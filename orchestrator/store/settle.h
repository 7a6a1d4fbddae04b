// Settling a trial: its attempts are read, the sweep's rules decide its state and its final attempt, and both
// are written, in the transaction of the caller.
#pragma once
#include <span>

#include "orchestrator/store/db.h"
#include "orchestrator/store/trial_history.h"

namespace sweep::store {

// The rules with the options of one sweep.
struct SweepRules {
  DecideTrial decide;
  SweepOptions options;
};
SweepRules rules_of(Transaction&, i64 sweep, const DecideTrial&);

// Recomputes state, outcome and final attempt of one plan entry from its attempts. Idempotent. Refuses rules
// that decide nothing.
void settle(Transaction&, i64 entry, const SweepRules&);
// Entries with these final outcomes are pending again, with fresh retries. trial: this one alone.
void reopen_entries(Transaction&, i64 sweep, std::span<const Outcome>,
                    const std::optional<std::string>& trial = {});
// Ended attempts of an entry since it was last reopened.
struct Tries {
  // Counted by what ended them: the trial itself, or the machine.
  i64 counted = 0, infra = 0;
};
Tries tries_of(Transaction&, i64 entry);

}  // namespace sweep::store
