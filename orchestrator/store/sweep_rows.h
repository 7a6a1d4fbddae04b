// Sweeps, their allocations and their attempts as rows.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/store/db.h"
#include "orchestrator/store/store.h"
#include "orchestrator/store/stored_rows.h"

namespace sweep::store {

std::vector<SweepRow> all_sweeps(Transaction&);  // sweeps in the order of their numbers
std::optional<SweepRow> sweep_named(Transaction&, const std::string& name);
// Adds the sweep, or stores the row anew under the number that it has.
void write_sweep(Transaction&, const SweepRow&);
// Its options; none where there is no such sweep.
SweepOptions options_of(Transaction&, i64 sweep);
void add_event_row(Transaction&, i64 sweep, i64 unix_ns, EventKind, std::string_view text,
                   std::optional<i64> attempt = {});

// What the keys in `meta` of a sweep's excluded hosts begin with; the launcher and the host follow.
std::string excluded_hosts_key(i64 sweep);

// The sweep that an allocation belongs to; refuses the transaction where it is not known.
std::optional<i64> sweep_of_allocation(Transaction&, const std::string& id);
void write_allocation(Transaction&, const StoredAllocation&);

struct NewAttempt {
  i64 entry = 0;
  std::string allocation;
  State state = State::kPosted;
  i64 world = 1;
  std::string request;
  i64 posted_unix_ns = 0;
  std::optional<i64> ended_unix_ns;
};
// Returns its number. It is stamped after every earlier attempt of the entry, whatever the clock did.
i64 insert_attempt(Transaction&, const NewAttempt&);

}  // namespace sweep::store
