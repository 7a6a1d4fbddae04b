// Merging one database into another: the statements, run inside the receiving database's transaction with the
// other one attached. They take nothing that the receiving one says otherwise.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
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

// The columns that two databases of a merge have, as lists for its statements.
using Names = std::vector<std::string>;

Names columns_of(Transaction&, const std::string& schema, const char* table);
// "a, b, c", each with `before` in front.
std::string joined(const Names&, const std::string& before);
// The columns of the other file's table, without those that are numbered or settled anew here.
Names copied(Transaction&, const std::string& from, const char* table,
             std::initializer_list<std::string_view> without);

}  // namespace sweep::store
