// Trials with their final answers, read as rows in full.
#pragma once
#include <initializer_list>
#include <string_view>
#include <vector>

#include "orchestrator/store/columns.h"
#include "schema/result_row.h"

namespace sweep::store {

// Rows in plan order. `where`: a condition over plan_entry p, with a parameter for each of the keys. `entries`:
// gets the plan entry of each row.
std::vector<ResultRow> result_rows(Transaction&, const Selects&, std::string_view where,
                                   std::initializer_list<i64> keys, std::vector<i64>* entries = nullptr);

}  // namespace sweep::store
