#include "worker/rank/device.h"

#include <c10/util/Exception.h>

#include "bench_kernels/comm/cuda_plugin.h"
#include "bench_kernels/kernels/counting_allocator.h"

namespace sweep::rank {
namespace {

c10::Device place_for(const Trial& trial, i64 local_rank) {
  if (trial.hardware == "cpu") return c10::Device(c10::kCPU);
  const auto* cuda = comm::cuda_plugin();
  const int there = cuda == nullptr ? 0 : cuda->device_count();
  const bool shares = trial.backend == "gloo" && there > 0;
  TORCH_CHECK_NOT_IMPLEMENTED(shares || local_rank < there, "hardware ", trial.hardware, " needs GPU number ",
                              local_rank, " on this node, which has ", there,
                              " of them (ranks share one with backend gloo)");
  const i64 index = shares ? local_rank % there : local_rank;
  cuda->set_device(static_cast<int>(index));
  return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
}

}  // namespace

Device::Device(const Trial& trial, i64 local_rank) : place_(place_for(trial, local_rank)) {}

void Device::begin(const Trial& trial) const {
  if (!is_cuda()) {
    memory::start_clean(c10::kCPU);
    memory::set_cap(c10::kCPU, trial.memory_cap_bytes);
    return;
  }
  const auto* cuda = comm::cuda_plugin();
  if (trial.memory_cap_bytes) cuda->set_cap(place_.index(), *trial.memory_cap_bytes);
  cuda->reset_peak(place_.index());
}

DeviceStats Device::stats() const {
  DeviceStats stats;
  if (is_cuda()) {
    const auto cuda = comm::cuda_plugin()->stats(place_.index());
    stats = {cuda.current, cuda.peak_allocated, cuda.peak_reserved, cuda.retries, cuda.ooms, std::nullopt};
    if (cuda.asked > 0) stats.asked = cuda.asked;
  } else {
    const auto cpu = memory::stats(c10::kCPU);
    stats = {cpu.current, cpu.peak, std::nullopt, cpu.retries, cpu.ooms, std::nullopt};
    if (cpu.ooms > 0) stats.asked = cpu.asked;
  }
  return stats;
}

}  // namespace sweep::rank
