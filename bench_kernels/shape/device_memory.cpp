#include "bench_kernels/shape/device_memory.h"

#include <set>
#include <vector>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/parallel_dims.h"

namespace sweep::shape {
namespace {

// Groups of rank 0 that have several members; dimensions with the same members share a communicator.
i64 communicators(const ParallelDims& dims) {
  std::set<std::vector<i64>> groups;
  for (std::size_t d = 0; d < kDimensions; ++d)
    if (auto members = dims.group(static_cast<Dimension>(d), 0); members.size() > 1)
      groups.insert(std::move(members));
  return static_cast<i64>(groups.size());
}

}  // namespace

std::optional<i64> allocator_limit(const Trial& trial) {
  const Hardware* hardware = known_hardware(trial.hardware);
  if (hardware == nullptr || !hardware->memory_bytes) return std::nullopt;
  if (trial.memory_cap_bytes) return trial.memory_cap_bytes;
  const auto dims = ParallelDims::make(trial);
  if (!dims) return std::nullopt;
  return *hardware->memory_bytes - kContextBytes - kCommunicatorBytes * communicators(*dims);
}

}  // namespace sweep::shape
