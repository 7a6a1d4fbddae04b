// step_memory: the device memory of a trial's training step, without running it: what each rank of the
// pipeline holds at its fullest moment, by part. It follows the step's own allocations (unit_memory.h)
// through the pipeline's schedule; the dry run of the step is its referee. What it does not count: what an
// allocator reserves beyond what is allocated, and what lies outside of it (a GPU's context, NCCL).
#pragma once
#include <vector>

#include "bench_kernels/shape/memory_parts.h"
#include "bench_kernels/shape/stage_split.h"
#include "bench_kernels/shape/step_sizes.h"
#include "schema/trial.h"

namespace sweep::shape {

// Selects the ranks of the pipeline that are computed. kFullest leaves those at zero that hold no more than
// an earlier one: the same layers, and fewer micro-batches in flight.
enum class Ranks { kAll, kFullest };
// The memory of one rank at its fullest moment, and the gradients of its whole step: at that moment there may be fewer.
struct RankMemory : PartBytes {
  double all_gradients = 0;
};
// One entry for each rank. REQUIRES: the trial's degrees, stages and heads divide (plan/rules.h).
std::vector<RankMemory> step_memory(const Trial&, KernelPath, Ranks = Ranks::kAll);
// Bytes that LibTorch's cuBLAS handle takes from the caching allocator at its first product and keeps.
double library_workspace(const Trial&);
// The memory of an evaluation's batch on the chunks of the model that a rank holds, at its fullest moment, beside the
// states: forward alone, nothing kept. By the units' models; the dry run is its referee. REQUIRES: eval_batch_size > 0.
PartBytes evaluation_memory(const Trial&, const std::vector<StageShare>& chunks, bool gpu);

}  // namespace sweep::shape
