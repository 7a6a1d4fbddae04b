// ImportedRow: one measurement made elsewhere: its configuration with the place it came from, and how
// it ended. Without a result it was pruned: never run.
#pragma once
#include <optional>

#include "schema/plan_entry.h"
#include "schema/records.h"

namespace sweep {

struct ImportedRow {
  PlanEntry entry;
  std::optional<Result> result;
};

}  // namespace sweep
