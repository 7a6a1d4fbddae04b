#include "bench_kernels/comm/cuda/launch.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <tuple>

#include "base/files.h"
#include "bench_kernels/comm/cuda/kernel_times.h"
#include "bench_kernels/comm/cuda/nvrtc.h"

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
  // For calls that load code, which takes memory of the device: gigabytes may lie unused in LibTorch's cache.
  // Where the device has none left the cache is emptied, and the call repeated once.
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
