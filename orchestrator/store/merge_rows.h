// Merging one database into another: the statements, run inside the receiving database's transaction with the
// other one attached. They take nothing that the receiving one says otherwise.
#pragma once
#include <string>
#include <vector>

#include "orchestrator/store/db.h"
#include "orchestrator/store/store.h"

namespace sweep::store {

// `from`: the attached schema's name. `shown`: the file that sentences name. Refuses what cannot be joined.
void check_mergeable(Transaction&, const std::string& from, const std::string& shown);
// The sweeps of this database, by number, that the other one has too.
std::vector<i64> shared_sweeps(Transaction&, const std::string& from);
// REQUIRES: check_mergeable passed. `now`: the stamp of the event that says it.
MergeCounts merge_rows(Transaction&, const std::string& from, const std::string& shown, const DecideTrial&,
                       i64 now);

}  // namespace sweep::store
