// dry_run: the memory of a trial without its data: the real step on meta tensors, behind the counting
// allocator.
#pragma once
#include <string>

#include "base/expected.h"
#include "schema/records.h"

namespace sweep::step {

enum class Backend { kCpu, kCuda };  // the kernels whose allocations are counted

// Runs two steps of each distinct rank of the trial (one per stage of the pipeline; only as many
// micro-batches as show the peak). With cpu the peak is that of the CPU run to the byte (shm backend); with cuda it
// counts what LibTorch's allocator is asked for, cuBLAS's workspace included, in blocks of 512 bytes (a block that it
// does not split may be up to 1 MiB larger). Installs the counting allocator for meta tensors. `tensors`: what lives at
// the peak is listed.
Expected<DryRunAnswer> dry_run(const Trial&, Backend, bool tensors = false);
// The same as text.
Expected<std::string> dry_run_line(const Trial&, Backend, bool tensors = false);

}  // namespace sweep::step
