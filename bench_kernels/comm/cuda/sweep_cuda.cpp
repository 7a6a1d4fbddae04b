#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "bench_kernels/comm/cuda/calls.h"
#include "bench_kernels/comm/cuda_plugin.h"

namespace sweep::comm {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;
constexpr std::size_t kAll = 0;  // the aggregate over block sizes, first of a statistic's three entries

int device_count() {
  return c10::cuda::device_count();
}
std::atomic<std::int64_t> last_asked{0};
std::atomic<int> rank_device{0};

// LibTorch makes the caching allocator's devices at its lazy CUDA initialisation. Before that, each
// statistic, cap and observer of the allocator is refused or lost, so it comes first.
void set_device(int device) {
  static std::once_flag observed;
  std::call_once(observed, [] {
    at::globalContext().lazyInitDevice(c10::kCUDA);
    allocator::attachOutOfMemoryObserver([](std::int64_t, std::size_t asked, std::size_t, std::size_t) {
      last_asked = static_cast<std::int64_t>(asked);
    });
  });
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
  rank_device = device;
}

void synchronize(int device) {
  set_device(device);
  c10::cuda::device_synchronize();
}

// Tells phantom NCCL, while it lives, that the peers of the communicators that are made are not there.
class Mirrored {
 public:
  explicit Mirrored(int nodes) : tell_(nodes > 0 ? find() : nullptr) {
    if (tell_ != nullptr) tell_(nodes);
  }
  ~Mirrored() {
    if (tell_ != nullptr) tell_(0);
  }
  Mirrored(const Mirrored&) = delete;
  Mirrored& operator=(const Mirrored&) = delete;

 private:
  using Tell = void (*)(int nodes);
  static Tell find() {
    const auto tell = reinterpret_cast<Tell>(dlsym(RTLD_DEFAULT, "sweep_phantom_mirror"));
    TORCH_CHECK(tell != nullptr, "a rank without its peers needs phantom GPUs (sweep run --rehearse)");
    return tell;
  }
  Tell tell_;
};

// Bound to its device and made at once, so that no communicator is made in the middle of a step. Most of
// NCCL's memory comes later: it connects to its peers with the first operation of each kind. Groups that every
// rank of the world makes at the same time are split from the world's communicator, which is quicker; each has
// resources of its own.
BackendPtr make_nccl_group(const GroupOptions& options) {
  using Nccl = c10d::ProcessGroupNCCL;
  const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(options.device));
  const auto store = group_store(options, "nccl");
  auto nccl_options = Nccl::Options::create(/*is_high_priority_stream=*/true);
  nccl_options->timeout = options.timeout;
  nccl_options->group_name = options.name;
  for (const std::int64_t member : options.members)
    nccl_options->global_ranks_in_group.push_back(static_cast<std::uint64_t>(member));
  if (const auto parent = c10::dynamic_intrusive_pointer_cast<Nccl>(options.parent)) {
    nccl_options->split_from = parent;
    nccl_options->split_color = static_cast<int>(options.members.front());
  }
  const Mirrored mirrored(options.mirrored_on_nodes);
  auto group = c10::make_intrusive<Nccl>(store, options.rank, options.world, std::move(nccl_options));
  group->setGroupDesc(options.label);
  group->setBoundDeviceId(device);
  group->eagerConnectSingleDevice(device);
  return group;
}

CudaDevice describe(int device) {
  cudaDeviceProp properties{};
  TORCH_CHECK(cudaGetDeviceProperties(&properties, device) == cudaSuccess,
              "the driver does not describe device ", device);
  return {properties.name, std::to_string(properties.major) + "." + std::to_string(properties.minor),
          static_cast<std::int64_t>(properties.totalGlobalMem)};
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

CudaCondition condition(int device) {
  CudaCondition out;
  std::size_t free_bytes = 0, total_bytes = 0;
  const bool set = cudaSetDevice(device) == cudaSuccess;
  out.answers = set && cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess;
  if (!out.answers) return out;
  out.free_bytes = static_cast<std::int64_t>(free_bytes);
  try {
    out.cublas = at::cuda::getCurrentCUDABlasHandle() != nullptr;
  } catch (const std::exception&) {
    out.cublas = false;
  }
  return out;
}

std::string phantom() {
  using Counters = void (*)(char* out, std::size_t size);
  static const auto counters = reinterpret_cast<Counters>(dlsym(RTLD_DEFAULT, "sweep_phantom_counters"));
  if (counters == nullptr) return {};
  std::array<char, 8192> text{};
  counters(text.data(), text.size());
  return text.data();
}

// Asks NCCL's events how far they are, from a thread that has no device yet: on GPU 0 each rank would make one more context, of
// half a GiB.
std::string trace() {
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(rank_device.load()));
  return c10d::dump_nccl_trace_json(/*includeCollectives=*/true, /*onlyActive=*/false);
}

constexpr CudaPlugin kPlugin{CudaPlugin::kVersion,
                             &device_count,
                             &set_device,
                             &synchronize,
                             &make_nccl_group,
                             &describe,
                             &stats,
                             &reset_peak,
                             &set_cap,
                             &condition,
                             &phantom,
                             &trace,
                             &cuda::launch,
                             &cuda::graph_pool,
                             &cuda::capture};

}  // namespace
}  // namespace sweep::comm

extern "C" __attribute__((visibility("default"))) const sweep::comm::CudaPlugin* sweep_cuda_plugin() {
  return &sweep::comm::kPlugin;
}
