// Screen: what a node can do, in some hundred milliseconds before its first trial: matmul, memory bandwidth,
// and transport to the ranks of other nodes. It measures this rank and judges none.
#pragma once
#include <string>

#include "bench_kernels/comm/channel.h"
#include "worker/rank/device.h"

namespace sweep::rank {

// JSON object: matmul_gflops, memory_gb_s, links: a list of [rank it came from, GB/s]. A collective of all
// ranks.
std::string screen(const Device&, comm::Channel& world);

}  // namespace sweep::rank
