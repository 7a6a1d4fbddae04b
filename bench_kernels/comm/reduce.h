// Element-wise reduction of equally long buffers in the order they are given, so the result never depends on
// timing.
#pragma once
#include <c10/core/ScalarType.h>

#include <cstddef>
#include <span>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace sweep::comm {

// to[i] = op over sources of from[i], i < count. bf16 and f16 are accumulated in fp32 and rounded once. `to`
// may be one of the sources. Types: f32, f64, f16, bf16, i64; operations: SUM, AVG, MAX; anything else throws
// c10::NotImplementedError.
void reduce_in_order(c10::ScalarType, c10d::ReduceOp::RedOpType, std::span<const std::byte* const> sources,
                     std::byte* to, std::size_t count);
// Throws c10::NotImplementedError unless reduce_in_order() knows both.
void check_reducible(c10::ScalarType, c10d::ReduceOp::RedOpType);

}  // namespace sweep::comm
