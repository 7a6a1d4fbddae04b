// Private to this room: what decides how an operation on tensors is launched as a fused kernel of a device.
#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <initializer_list>

#include "bench_kernels/kernels/device/args.h"
#include "bench_kernels/kernels/device_ops.h"

namespace sweep::kernels::device {

using sweep::device::Index;

inline constexpr std::int64_t kPackBytes = 16;

inline void* at_of(const at::Tensor& t) {
  return t.defined() ? t.mutable_data_ptr() : nullptr;
}

inline std::int64_t bytes_of(const at::Tensor& t) {
  return t.defined() ? static_cast<std::int64_t>(t.nbytes()) : 0;
}

inline std::int64_t pack_of(const at::Tensor& t) {
  return kPackBytes / static_cast<std::int64_t>(t.element_size());
}

// Whether every row of these begins on 16 bytes, where rows lie `strides` elements apart.
bool aligned(std::initializer_list<at::Tensor> tensors, std::initializer_list<std::int64_t> strides);

// Whole warps for so many columns, a pack or a single for each thread.
inline unsigned threads_for(std::int64_t columns) {
  constexpr std::int64_t kLeast = 2 * sweep::device::kWarp;
  std::int64_t threads = kLeast;
  while (threads < columns && threads < sweep::device::kMostThreads) threads *= 2;
  return static_cast<unsigned>(threads);
}

inline unsigned blocks_for(std::int64_t rows) {
  return static_cast<unsigned>(std::min<std::int64_t>(rows, 1 << 30));
}

// Bytes of shared memory in which a block adds up: a number of the accumulation type for each warp.
inline std::size_t room_of_warps(const at::Tensor& like) {
  return sweep::device::kWarp * (like.scalar_type() == at::kDouble ? sizeof(double) : sizeof(float));
}

// Launches for the stored type of `like`. Nothing runs for meta tensors, and a grid without blocks is refused by the
// driver.
void run(const at::Tensor& like, Launch launch);

// partial: sums of parts, [parts, n], with db [parts, 2n]: the gradients become, or grow by, the sums of them.
void sum_parts(const at::Tensor& partial, const GradOut& dw, const GradOut& db);

}  // namespace sweep::kernels::device
