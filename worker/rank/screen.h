// Screen: what a node can do, in some hundred milliseconds before its first trial: matmul, memory bandwidth,
// and transport to the ranks of other nodes. It measures this rank and judges none.
#pragma once
#include "bench_kernels/comm/channel.h"
#include "schema/records.h"
#include "worker/rank/device.h"

namespace sweep::rank {

// A collective of all ranks.
ScreenFindings screen(const Device&, comm::Channel& world);

}  // namespace sweep::rank
