// Positions: rotary tables for the positions that one rank holds.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "bench_kernels/kernels/ops.h"
#include "schema/model_spec.h"

namespace sweep::model {

// [positions, head_dim / 2] each: of layers with full attention, or of those with a window (local). Angles are rounded
// to float, as the reference implementations' are. On meta tensors: sizes only. Of latent attention the
// first rope_head_dim / 2 columns turn and the others keep the angle 0 (kernels/latent.h); with YaRN's factor of the
// scores all columns have its root, so that queries and keys bring it along;
// so is query_pre_attn_scalar's.
kernels::Angles rotary_tables(const ModelSpec&, const std::vector<std::int64_t>& positions,
                              const at::TensorOptions&, bool local);

// Copies the positions to the device, as a tensor of whole numbers.
at::Tensor position_tensor(const std::vector<std::int64_t>& positions, at::Device);

// The positions of a sequence that a rank of a context-parallel group holds, in order: all of them alone.
std::vector<std::int64_t> local_positions(std::int64_t seq_len, std::int64_t rank, std::int64_t size);

}  // namespace sweep::model
