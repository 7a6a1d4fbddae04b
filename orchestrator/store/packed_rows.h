// Keeping the packed columns.
#pragma once
#include "orchestrator/store/columns.h"

namespace sweep::store {

// Is called at the end of every transaction that changes results or plan entries: packs the loose entries
// once there are more than `most_loose`.
void pack(Transaction&, const Selects&, i64 most_loose);

}  // namespace sweep::store
