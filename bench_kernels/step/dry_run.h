// dry_run: the memory of a trial without its data: the real step on meta tensors, behind the counting
// allocator.
#pragma once
#include <string>

#include "base/expected.h"
#include "schema/trial.h"

namespace sweep::step {

enum class Backend { kCpu, kCuda };  // the kernels whose allocations are counted

// Runs two steps of each distinct rank of the trial (one per stage of the pipeline; only as many
// micro-batches as show the peak) and returns one line of JSON:
// {"trial": id, "backend": "cpu" | "cuda", "peak_bytes": [per stage], "peak_parts": [{"weights", "gradients", "optimizer",
// "library", "step"} per stage], "peak_rank_bytes": the largest peak}. Parts of a stage add up to its peak;
// `step` is what the step itself allocates: activations, logits, buffers and temporaries. With cuda also
// "reserved_bytes": [per stage], the most that a caching allocator reserves for the same blocks in the same order,
// "alloc_retries": [per stage], and, if a stage does not fit its GPU (shape::allocator_limit), "refused":
// {"stage", "bytes", "allocated_bytes", "reserved_bytes", "limit_bytes"}, the block that no room was left for; if
// the trial's env changes the allocator there is "not_modelled", a sentence, in their place. With
// cpu the peak is that of the CPU run to the byte (shm backend); with cuda it counts what LibTorch's
// allocator is asked for, cuBLAS's workspace included, in blocks of 512 bytes (a block that it does not split
// may be up to 1 MiB larger). Installs the counting allocator for meta tensors. With `tensors` also
// "peak_tensors": [{"bytes", "count", "lasting"}], the blocks that live at the peak of the fullest stage by
// their size; lasting: from before the step.
Expected<std::string> dry_run_line(const Trial&, Backend, bool tensors = false);

}  // namespace sweep::step
