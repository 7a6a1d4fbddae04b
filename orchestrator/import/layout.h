// Layout: the parts of a configuration that follow from those a file states, by the rank algebra: the
// data-parallel degree, nodes, gradient accumulation, global batch. What is stated is never changed.
#pragma once
#include <set>
#include <string>

#include "base/expected.h"
#include "schema/trial.h"

namespace sweep::imports {

using Stated = std::set<std::string_view>;  // keys of axes

// Completes the trial; returns what was assumed, as a sentence. Empty: every number follows from those
// stated. Error: the equation that does not come out whole, a degree that nothing tells, or fewer GPUs than ranks.
Expected<std::string> complete(Trial&, const Stated&);
// After complete() has failed for this axis: it has no value, as in a plan (0), unless it is stated.
void leave_unresolved(Trial&, const Stated&, std::string_view axis);
// dp x micro_batch_size x grad_accum is the global batch.
bool batch_multiplies_out(const Trial&);

}  // namespace sweep::imports
