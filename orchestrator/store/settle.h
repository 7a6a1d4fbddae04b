// Settling a trial: its attempts are read, the sweep's rules decide its state and its final attempt, and both are
// written, in the transaction of the caller. It keeps the index by which `best` finds results.
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

// SQL of the stamp of a new attempt of entry ?1 at the time ?2: after every earlier one, whatever the clock did.
inline constexpr const char* kPostedAfter =
    "max(?2, (SELECT COALESCE(max(posted_unix_ns) + 1, 0) FROM attempt WHERE entry = ?1))";

// Recomputes state, outcome, final attempt and ranking of one plan entry from its attempts. Idempotent. Refuses rules
// that decide nothing.
void settle(Transaction&, i64 entry, const SweepRules&);
// Entries with these final outcomes are pending again, with fresh retries.
void reopen_entries(Transaction&, i64 sweep, std::span<const Outcome>);
// Ended attempts of an entry since it was last reopened.
struct Tries {
  // By what ended them: the trial itself, or the machine.
  i64 counted = 0, infra = 0;
};
Tries tries_of(Transaction&, i64 entry);

}  // namespace sweep::store
