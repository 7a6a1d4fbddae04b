// What the rehearsals in a database found for the configurations of a plan; `sweep plan` shows it beside the
// predictions.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "schema/outcome.h"
#include "schema/result_row.h"

namespace sweep::driver {

struct Rehearsed {
  Outcome outcome = Outcome::kOk;
  std::optional<i64> allocated_bytes, reserved_bytes;  // of the rank with most; absent: not reached
};
using RehearsedTrials = std::map<std::string, Rehearsed, std::less<>>;  // by trial id

// Of all rehearsals in the database, the newest of a trial; empty where there is no such file.
Expected<RehearsedTrials> rehearsed_in(const std::string& db);

// The columns rehearsed_outcome, rehearsed_allocated_bytes and rehearsed_reserved_bytes; `table` has the ids
// under `trial`.
void add_rehearsed(Table& table, const RehearsedTrials&);

}  // namespace sweep::driver
