// Kernels as the compiler's code and the CUDA runtime launch them: registered by name, counted, modelled,
// never carried out.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

#include "worker/phantom/counters.h"
#include "worker/phantom/kernels.h"
#include "worker/phantom/launch_log.h"

using namespace sweep::phantom;

namespace {

// The kernels that matter to the model, and with a log of launches all, by the address that launches name them with.
class KernelNames {
 public:
  static KernelNames& get() {
    static auto* names = new KernelNames;
    return *names;
  }
  void add(const void* function, const char* mangled) {
    const bool tells =
        grouped_kernel(mangled) != GroupedKernel::kNone || ListKernel::named(mangled).lists > 0;
    const std::lock_guard lock(mutex_);
    if (logs_launches()) names_.emplace(function, mangled);
    if (std::strstr(mangled, "flash_") == nullptr && !tells) return;
    models_.emplace(function, KernelModel(mangled));
  }
  KernelModel model(const void* function) {
    const std::lock_guard lock(mutex_);
    const auto found = models_.find(function);
    return found == models_.end() ? KernelModel() : found->second;
  }

  const char* name(const void* function) {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(function);
    return found == names_.end() ? "unknown" : found->second.c_str();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, KernelModel> models_;
  std::unordered_map<const void*, std::string> names_;
};

// CUDA 13 compiles for 7.5 and later. CUB refuses to work with older code, which a phantom of an older GPU
// does not need.
constexpr int kOldestCode = 75;

thread_local struct {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
} pushed;

Grid grid_of(const dim3& d) {
  return {d.x, d.y, d.z};
}

thread_local Product next_product;  // the grouped one whose second kernel is still to come

cudaError_t launch(const void* function, dim3 grid, dim3 block, cudaStream_t stream, void* const* arguments) {
  if (const auto error = Runtime::get().begin()) return error;
  const KernelModel model = KernelNames::get().model(function);
  const double moved = model.list().lists > 0 ? model.list().bytes(arguments[0], grid.x) : 0;
  if (logs_launches())
    log_launch(KernelNames::get().name(function), grid_of(grid).count() * grid_of(block).count(), moved);
  if (moved > 0) return run_kernel(stream_of(stream), kernel_time_of_bytes(moved));
  if (model.grouped() == GroupedKernel::kSizes) next_product = model.product(arguments);
  if (model.grouped() != GroupedKernel::kProduct)
    return run_kernel(stream_of(stream), model.time(grid_of(grid), grid_of(block), arguments));
  ++counters().matmuls;
  return run_kernel(stream_of(stream), product_time(next_product));
}

}  // namespace

PHANTOM_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared,
                                                 cudaStream_t stream) {
  pushed = {grid, block, shared, stream};
  return 0;
}

PHANTOM_API cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared,
                                                   void* stream) {
  *grid = pushed.grid;
  *block = pushed.block;
  *shared = pushed.shared;
  *static_cast<cudaStream_t*>(stream) = pushed.stream;
  return cudaSuccess;
}

PHANTOM_API cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

PHANTOM_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                           std::size_t, cudaStream_t stream) {
  return launch(kernel, grid, block, stream, arguments);
}

PHANTOM_API cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                         std::size_t, cudaStream_t stream) {
  return launch(function, grid, block, stream, arguments);
}

PHANTOM_API cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                                    void** arguments, std::size_t, cudaStream_t stream) {
  return launch(function, grid, block, stream, arguments);
}

PHANTOM_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                            void** arguments) {
  return launch(function, config->gridDim, config->blockDim, config->stream, arguments);
}

PHANTOM_API void** __cudaRegisterFatBinary(void*) {
  static void* handle[4];
  return handle;
}

PHANTOM_API void __cudaRegisterFatBinaryEnd(void**) {}

PHANTOM_API void __cudaUnregisterFatBinary(void**) {}

PHANTOM_API void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*,
                                        uint3*, dim3*, dim3*, int*) {
  KernelNames::get().add(host, name);
}

PHANTOM_API void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}

PHANTOM_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void*) {
  std::memset(out, 0, sizeof *out);
  const Device& device = description().device;
  out->maxThreadsPerBlock = 1024;
  out->numRegs = 32;
  out->binaryVersion = out->ptxVersion = std::max(kOldestCode, device.major * 10 + device.minor);
  out->maxDynamicSharedSizeBytes = 49152;
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  return Runtime::get().begin();
}

PHANTOM_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int,
                                                                               std::size_t, unsigned) {
  *blocks = 2;
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int,
                                                                      std::size_t) {
  *blocks = 2;
  return cudaSuccess;
}
