// Settling a trial: which of its attempts is the final one, whether it is to be run again, and where `best`
// finds it.
#pragma once
#include <span>

#include "orchestrator/store/db.h"

namespace sweep::store {

// How often an outcome is tried again before it stands; from the sweep's options_json.
struct Retries {
  i64 crash = 1, hang = 0, timeout = 0, infra = 3;
};
Retries retries_of(Transaction&, i64 sweep);

// SQL of the stamp of a new attempt of entry ?1 at the time ?2: after every earlier one, whatever the clock did.
inline constexpr const char* kPostedAfter =
    "max(?2, (SELECT COALESCE(max(posted_unix_ns) + 1, 0) FROM attempt WHERE entry = ?1))";

// Recomputes state, outcome, final attempt and ranking of one plan entry from its attempts. Idempotent.
void settle(Transaction&, i64 entry, const Retries&);
// Entries with these final outcomes are pending again, with fresh retries.
void reopen_entries(Transaction&, i64 sweep, std::span<const Outcome>);
// Earlier attempts that count against the retries of an entry.
struct Tries {
  i64 counted = 0, infra = 0;
};
Tries tries_of(Transaction&, i64 entry);

}  // namespace sweep::store
