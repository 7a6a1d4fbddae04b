// Sweeps as rows.
#pragma once
#include <string>
#include <vector>

#include "orchestrator/store/db.h"
#include "orchestrator/store/store.h"

namespace sweep::store {

std::vector<SweepRow> all_sweeps(Transaction&);  // sweeps in the order of their numbers
std::optional<SweepRow> sweep_named(Transaction&, const std::string& name);
// Adds the sweep, or stores the row anew under the number that it has.
void write_sweep(Transaction&, const SweepRow&);
void add_event_row(Transaction&, i64 sweep, i64 unix_ns, std::string_view kind, std::string_view text,
                   std::optional<i64> attempt = {});

}  // namespace sweep::store
