#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/files.h"
#include "bench_kernels/comm/cuda/calls.h"
#include "bench_kernels/comm/cuda/nvrtc.h"
#include "bench_kernels/kernels/device_ops.h"

namespace sweep::cuda {
namespace {

// The driver's functions, as the runtime that LibTorch loaded finds them: nothing here links the driver.
struct Driver {
  decltype(&cuModuleLoadData) load;
  decltype(&cuModuleGetFunction) function;
  decltype(&cuLaunchKernel) launch;
  decltype(&cuGetErrorString) text;
  Driver() {
    find("cuModuleLoadData", load), find("cuModuleGetFunction", function);
    find("cuLaunchKernel", launch), find("cuGetErrorString", text);
  }
  void check(CUresult result, const char* doing) const {
    const char* said = "unknown error";
    if (result != CUDA_SUCCESS) text(result, &said);
    TORCH_CHECK_WITH(OutOfMemoryError, result != CUDA_ERROR_OUT_OF_MEMORY, "CUDA out of memory while ", doing,
                     " a fused kernel");
    TORCH_CHECK(result == CUDA_SUCCESS, "CUDA error while ", doing, " a fused kernel: ", said);
  }
  // Makes a call that loads code, which takes memory of the device: gigabytes may lie unused in LibTorch's cache.
  // If the device has none left, the cache is emptied and the call is repeated once.
  template <class Call>
  void check_with_memory(const Call& call, const char* doing) const {
    CUresult result = call();
    if (result == CUDA_ERROR_OUT_OF_MEMORY &&
        c10::cuda::currentStreamCaptureStatusMayInitCtx() == c10::cuda::CaptureStatus::None) {
      c10::cuda::CUDACachingAllocator::emptyCache();
      result = call();
    }
    check(result, doing);
  }

 private:
  template <class F>
  static void find(const char* name, F& function) {
    void* at = nullptr;
    cudaDriverEntryPointQueryResult found{};
    const auto result =
        cudaGetDriverEntryPointByVersion(name, &at, CUDART_VERSION, cudaEnableDefault, &found);
    TORCH_CHECK(result == cudaSuccess && at != nullptr, "the driver has no ", name);
    function = reinterpret_cast<F>(at);
  }
};

const Driver& driver() {
  static const Driver found;
  return found;
}

// The folder of the LibTorch that is loaded.
std::string torch_folder() {
  Dl_info own{};
  const auto symbol =
      reinterpret_cast<const void*>(static_cast<c10::DeviceIndex (*)()>(&c10::cuda::device_count));
  if (dladdr(symbol, &own) == 0) return {};
  return std::filesystem::path(own.dli_fname).parent_path();
}

// The folder of compiled kernels; empty: there is none.
std::string kept_in() {
  const auto cache = cache_folder();
  return cache.empty() ? cache : cache / "kernels";
}

const char* type_name(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16:
      return "Bf16";
    case at::kHalf:
      return "Fp16";
    case at::kDouble:
      return "double";
    default:
      TORCH_CHECK(type == at::kFloat, "the fused kernels compute in fp32, bf16, fp16 or fp64, not in ", type);
      return "float";
  }
}

// Functions of this process, by device; each is a module of its own, compiled and loaded when it is first asked for.
class Functions {
 public:
  CUfunction get(const kernels::device::Launch& launch) {
    const std::lock_guard lock(mutex_);
    const int device = c10::cuda::current_device();
    CUfunction& function = functions_[{device, launch.type, launch.kernel, launch.packed}];
    if (function == nullptr) function = loaded(device, launch);
    return function;
  }

 private:
  static CUfunction loaded(int device, const kernels::device::Launch& launch) {
    const cudaDeviceProp& properties = *at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(device));
    const nvrtc::Kernel kernel{launch.kernel, launch.packed, type_name(launch.type)};
    std::string code;
    try {
      code = nvrtc::compiled(torch_folder(), kernel, properties.major * 10 + properties.minor, kept_in());
    } catch (const std::runtime_error& e) {
      TORCH_CHECK_NOT_IMPLEMENTED(false, e.what());
    }
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    driver().check_with_memory([&] { return driver().load(&module, code.c_str()); }, "loading");
    driver().check(driver().function(&function, module, kernel.entry().c_str()), "finding");
    return function;
  }

  std::mutex mutex_;
  std::map<std::tuple<int, at::ScalarType, std::string, bool>, CUfunction> functions_;
};

// How long each fused kernel of this process took on the GPU, and what it moved, in the JSON file that
// SWEEP_KERNEL_TIMES names: {"kernels": [{kernel, type, launches, ms, bytes, best_ms, best_bytes}]}; the best launch
// moved most bytes in its time. The first three launches of a kernel are left out: they load its code and find the GPU's
// clocks low. Two events around each launch; the file is written anew after each 64 launches, so that the last of a
// process are missing. For one rank, and without CUDA graphs.
class KernelTimes {
 public:
  // Null without the variable.
  static KernelTimes* wanted();
  explicit KernelTimes(std::string path) : path_(std::move(path)) {}
  // Before and after a launch, on the current stream.
  void begin(const kernels::device::Launch&);
  void end();

 private:
  struct Timed {
    std::pair<std::string, at::ScalarType> kernel;
    std::int64_t bytes;
    at::cuda::CUDAEvent begin{cudaEventDefault}, end{cudaEventDefault};
  };
  struct Sum {
    std::int64_t left_out = 0, launches = 0, bytes = 0, best_bytes = 0;
    double ms = 0, best_ms = 0;
  };
  void add(const Timed&);
  void write();

  std::string path_;
  std::vector<Timed> open_;
  std::map<std::pair<std::string, at::ScalarType>, Sum> sums_;
};

KernelTimes* KernelTimes::wanted() {
  static KernelTimes* const times = [] {
    const char* path = std::getenv("SWEEP_KERNEL_TIMES");
    return path == nullptr ? nullptr : new KernelTimes(path);
  }();
  return times;
}

void KernelTimes::begin(const kernels::device::Launch& launch) {
  Timed& timed = open_.emplace_back();
  timed.kernel = {launch.kernel, launch.type}, timed.bytes = launch.bytes;
  timed.begin.record();
}

void KernelTimes::end() {
  constexpr std::size_t kAtOnce = 64;
  open_.back().end.record();
  if (open_.size() >= kAtOnce) write();
}

void KernelTimes::add(const Timed& timed) {
  constexpr std::int64_t kLeftOut = 3;
  Sum& sum = sums_[timed.kernel];
  if (sum.left_out < kLeftOut) {
    ++sum.left_out;
    return;
  }
  const auto ms = static_cast<double>(timed.begin.elapsed_time(timed.end));
  const bool best = sum.launches == 0 ||
                    static_cast<double>(timed.bytes) * sum.best_ms > static_cast<double>(sum.best_bytes) * ms;
  ++sum.launches, sum.bytes += timed.bytes, sum.ms += ms;
  if (best) sum.best_bytes = timed.bytes, sum.best_ms = ms;
}

void KernelTimes::write() {
  open_.back().end.synchronize();
  for (const Timed& timed : open_) add(timed);
  open_.clear();
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& [kernel, sum] : sums_) {
    if (sum.launches == 0) continue;
    rows.push_back({{"kernel", kernel.first},
                    {"type", c10::toString(kernel.second)},
                    {"launches", sum.launches},
                    {"ms", sum.ms},
                    {"bytes", sum.bytes},
                    {"best_ms", sum.best_ms},
                    {"best_bytes", sum.best_bytes}});
  }
  (void)files::write_atomically(
      path_, nlohmann::json{{"kernels", rows}}.dump());  // a diagnosis must not end the rank
}

// Tells phantom GPUs what the next launch moves: their kernels do not say (docs/phantom.md).
void tell_phantom(std::int64_t bytes) {
  using Tell = void (*)(std::int64_t bytes);
  static const auto tell = reinterpret_cast<Tell>(dlsym(RTLD_DEFAULT, "sweep_phantom_next_kernel"));
  if (tell != nullptr) tell(bytes);
}

}  // namespace

void launch(const kernels::device::Launch& launch) {
  static Functions functions;
  const CUfunction function = functions.get(launch);
  tell_phantom(launch.bytes);
  void* parameters[] = {const_cast<void*>(launch.args)};
  const CUstream stream = c10::cuda::getCurrentCUDAStream().stream();
  KernelTimes* const times = KernelTimes::wanted();
  if (times != nullptr) times->begin(launch);
  const auto start = [&] {
    return driver().launch(function, launch.blocks, 1, 1, launch.threads, 1, 1,
                           static_cast<unsigned>(launch.shared), stream, parameters, nullptr);
  };
  driver().check_with_memory(start, "launching");
  if (times != nullptr) times->end();
}

}  // namespace sweep::cuda
