// How many GPUs the fastest links join.
#pragma once
#include "bench_kernels/shape/catalogue.h"

namespace sweep::shape {

// GPUs that reach each other at intra_node_bandwidth: those of a node, or of a rack of several nodes (NVL72).
i64 linked_gpus(const Hardware&);

}  // namespace sweep::shape
