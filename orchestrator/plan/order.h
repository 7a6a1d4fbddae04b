// The order in which trials run when all of them do.
#pragma once
#include <vector>

#include "schema/plan_entry.h"

namespace sweep::plan {

// Sets PlanEntry::order: admitted first; by placement, so that one allocation serves neighbours; within it the best
// predicted rate of each model and sequence length first, then the second best of each. Ties stay as they are in
// `entries`, which is the order of the grid: an id, of which a script's path is a part, would shuffle them.
void set_order(std::vector<PlanEntry>&);

}  // namespace sweep::plan
