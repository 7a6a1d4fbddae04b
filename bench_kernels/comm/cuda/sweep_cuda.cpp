#include <ATen/Context.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "bench_kernels/comm/cuda_plugin.h"

namespace sweep::comm {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;
constexpr std::size_t kAll = 0;  // the aggregate over block sizes, first of a statistic's three entries

int device_count() {
  return c10::cuda::device_count();
}
std::atomic<std::int64_t> last_asked{0};

// LibTorch makes the caching allocator's devices at its lazy CUDA initialisation. Before that, each statistic, cap
// and observer of the allocator is refused or lost, so it comes first.
void set_device(int device) {
  static std::once_flag observed;
  std::call_once(observed, [] {
    at::globalContext().lazyInitDevice(c10::kCUDA);
    allocator::attachOutOfMemoryObserver([](std::int64_t, std::size_t asked, std::size_t, std::size_t) {
      last_asked = static_cast<std::int64_t>(asked);
    });
  });
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
}

void synchronize(int device) {
  set_device(device);
  c10::cuda::device_synchronize();
}

BackendPtr make_nccl_group(const GroupOptions& options) {
  using Nccl = c10d::ProcessGroupNCCL;
  const auto store = group_store(options, "nccl");
  auto nccl_options = Nccl::Options::create(/*is_high_priority_stream=*/true);
  nccl_options->timeout = options.timeout;
  nccl_options->group_name = options.name;
  return c10::make_intrusive<Nccl>(store, options.rank, options.world, std::move(nccl_options));
}

CudaStats stats(int device) {
  const auto all = allocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
  return {all.allocated_bytes[kAll].current,
          all.allocated_bytes[kAll].peak,
          all.reserved_bytes[kAll].peak,
          all.num_alloc_retries,
          all.num_ooms,
          last_asked.load()};
}

void reset_peak(int device) {
  allocator::resetPeakStats(static_cast<c10::DeviceIndex>(device));
}

// The allocator multiplies the fraction with the device's memory again; the rounding is towards the smaller
// cap.
void set_cap(int device, std::int64_t bytes) {
  set_device(device);
  std::size_t free_bytes = 0, total_bytes = 0;
  TORCH_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess, "cudaMemGetInfo failed on device ",
              device);
  const double fraction = std::min(1.0, static_cast<double>(bytes) / static_cast<double>(total_bytes));
  allocator::setMemoryFraction(fraction, static_cast<c10::DeviceIndex>(device));
}

void* mark() {
  auto* event = new at::cuda::CUDAEvent(cudaEventDefault);
  event->record(c10::cuda::getCurrentCUDAStream());
  return event;
}

std::int64_t elapsed_ns(void* from, void* to) {
  auto* end = static_cast<at::cuda::CUDAEvent*>(to);
  end->synchronize();
  return std::llround(static_cast<double>(static_cast<at::cuda::CUDAEvent*>(from)->elapsed_time(*end)) * 1e6);
}

void release(void* event) {
  delete static_cast<at::cuda::CUDAEvent*>(event);
}

constexpr CudaPlugin kPlugin{
    CudaPlugin::kVersion, &device_count, &set_device, &synchronize, &make_nccl_group, &stats,
    &reset_peak,          &set_cap,      &mark,       &elapsed_ns,  &release};

}  // namespace
}  // namespace sweep::comm

extern "C" __attribute__((visibility("default"))) const sweep::comm::CudaPlugin* sweep_cuda_plugin() {
  return &sweep::comm::kPlugin;
}
