#include "worker/rank/device.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <vector>

#include "bench_kernels/comm/cuda_plugin.h"
#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/ops.h"
#include "bench_kernels/shape/found_gpu.h"

namespace sweep::rank {
namespace {

std::vector<std::string> torch_archs() {
  std::istringstream words(SWEEP_TORCH_ARCHS);
  return {std::istream_iterator<std::string>(words), {}};
}

// A rehearsal computes nothing, so it needs no code for its GPU.
bool rehearses() {
  return std::getenv("SWEEP_REHEARSE") != nullptr;
}

// Results of a GPU under another one's name would be compared with the wrong peak and price; kernels that the
// build lacks would fail in the middle of a step. Memory of a phantom GPU is what the experiment says.
void refuse_other_gpu(const std::string& hardware, const comm::CudaDevice& gpu) {
  const bool phantom = std::getenv("SWEEP_PHANTOM") != nullptr;
  std::optional<i64> memory;
  if (!phantom) memory = gpu.memory_bytes;
  const auto declared = shape::find_hardware(hardware);
  const auto why = declared ? shape::not_the_declared(*declared, {gpu.name, gpu.compute_capability, memory})
                            : std::nullopt;
  TORCH_CHECK_NOT_IMPLEMENTED(!why, *why);
  TORCH_CHECK_NOT_IMPLEMENTED(rehearses() || shape::has_code_for(torch_archs(), gpu.compute_capability),
                              "this build has no code for ", gpu.name, ", compute capability ",
                              gpu.compute_capability, "; it has code for ", SWEEP_TORCH_ARCHS,
                              ": build with -DSWEEP_TORCH naming a LibTorch that has it");
}

c10::Device place_for(const Trial& trial, i64 local_rank) {
  if (trial.hardware == "cpu") return c10::Device(c10::kCPU);
  const auto* cuda = comm::cuda_plugin();
  const int there = cuda == nullptr ? 0 : cuda->device_count();
  const bool shares = trial.backend == CommBackend::kGloo && there > 0;
  TORCH_CHECK_NOT_IMPLEMENTED(shares || local_rank < there, "hardware ", trial.hardware, " needs GPU number ",
                              local_rank, " on this node, which has ", there,
                              " of them (ranks share one with backend gloo)");
  const i64 index = shares ? local_rank % there : local_rank;
  refuse_other_gpu(trial.hardware, cuda->describe(static_cast<int>(index)));
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

at::Tensor Device::random_matrix(i64 rows, i64 columns, at::ScalarType type) const {
  constexpr std::uint64_t kKey = 20261123;
  const at::Tensor out = at::empty({rows, columns}, at::TensorOptions(place_).dtype(type));
  kernels::fill_uniform(out, kKey, 1, {0, columns}, place_);
  return out;
}

FailureFacts Device::facts() const {
  FailureFacts out;
  out.status = last_library_status();
  if (!is_cuda()) return out;
  const auto condition = comm::cuda_plugin()->condition(place_.index());
  out.on_gpu = true;
  out.driver_answers = condition.answers;
  out.free_bytes = condition.free_bytes;
  out.cublas = condition.cublas;
  return out;
}

void Device::begin_stretch() {
  before_ = stats();
  if (is_cuda())
    comm::cuda_plugin()->reset_peak(place_.index());
  else
    memory::reset_peak(c10::kCPU);
}

DeviceStats Device::stats() const {
  DeviceStats stats = counted();
  stats.peak = std::max(stats.peak, before_.peak);
  if (stats.peak_reserved)
    stats.peak_reserved = std::max(*stats.peak_reserved, before_.peak_reserved.value_or(0));
  return stats;
}

DeviceStats Device::counted() const {
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
