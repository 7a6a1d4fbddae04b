// Memory that a rank's caching allocator may reserve on its GPU: the GPU's memory less what others hold there.
#pragma once
#include <optional>

#include "schema/trial.h"

namespace sweep::shape {

// Held by each process that uses the GPU. On an H100 with CUDA 13 a context takes about as much.
inline constexpr i64 kContextBytes = i64{500} << 20;
// Held by an NCCL communicator from its first operation on: buffers and connections of NCCL 2.28.
inline constexpr i64 kCommunicatorBytes = i64{160} << 20;

// Bytes: the trial's cap, else the memory of its hardware without the context and the communicators of a rank.
// nullopt: the hardware is unknown, or is a processor. REQUIRES: the rank algebra holds for the trial.
std::optional<i64> allocator_limit(const Trial&);

}  // namespace sweep::shape
