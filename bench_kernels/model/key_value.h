// Key-value heads that several tensor-parallel ranks read (tp > kv_heads): each of those ranks computes an
// equal piece of the head's columns of k and v, and all have the whole head for their own queries: gathered
// in forward, its gradient summed and scattered in backward. So weights, gradients and optimizer state are
// divided over tp as all others are, and nothing is held twice but the head's activations (as in Megatron-LM
// core's attention.py, which gathers the queries too). Where a rank has heads of its own nothing is sent, and
// rows pass as they are.
#pragma once
#include "bench_kernels/model/unit.h"

namespace sweep::model {

// [rows, q | a piece of k | a piece of v] becomes [rows, q | k | v].
at::Tensor gather_key_values(const StageContext&, at::Tensor rows);
// The reverse, of gradients: a piece's is the sum over the ranks that read it.
at::Tensor scatter_key_values(const StageContext&, at::Tensor grad);

}  // namespace sweep::model
