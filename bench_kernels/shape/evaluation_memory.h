// The device memory of an evaluation's batch on the chunks of the model that a rank holds: forward alone, nothing kept.
// By the units' models (unit_memory.h); the dry run is its referee.
#pragma once
#include <vector>

#include "bench_kernels/shape/memory_parts.h"
#include "bench_kernels/shape/stage_split.h"
#include "schema/trial.h"

namespace sweep::shape {

// Memory at its fullest moment, beside the states. REQUIRES: eval_batch_size > 0.
PartBytes evaluation_memory(const Trial&, const std::vector<StageShare>& chunks, bool gpu);

}  // namespace sweep::shape
