// RehearsedTrials: the findings of the rehearsals in a database for the configurations of a plan; `sweep
// plan` shows them beside the predictions.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "schema/outcome.h"
#include "schema/result_row.h"

namespace sweep::answers {

struct Rehearsed {
  Outcome outcome = Outcome::kOk;
  std::optional<i64> allocated_bytes, reserved_bytes;  // bytes of the rank with most; nullopt: not reached
};
using RehearsedTrials = std::map<std::string, Rehearsed, std::less<>>;  // key: trial id

// The newest rehearsal of each trial in the database; empty if there is no such file.
Expected<RehearsedTrials> rehearsed_in(const std::string& db);

// The columns rehearsed_outcome, rehearsed_allocated_bytes and rehearsed_reserved_bytes; `table` has the ids
// under `trial`.
void add_rehearsed(Table& table, const RehearsedTrials&);

}  // namespace sweep::answers
