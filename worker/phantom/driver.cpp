// The driver's functions (libcuda.so.1) that LibTorch and Triton ask for, beside those of virtual memory.
#include <cuda.h>
#include <dlfcn.h>

#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "worker/phantom/counters.h"
#include "worker/phantom/faults.h"
#include "worker/phantom/kernels.h"
#include "worker/phantom/launch_log.h"
#include "worker/phantom/memory.h"
#include "worker/phantom/node.h"

using namespace sweep::phantom;

namespace {

char context_of_all = 0, module_of_all = 0;  // handles that lead to nothing

thread_local std::int64_t told_bytes = 0;

template <class Handle>
Handle handle_to(char& what) {
  return reinterpret_cast<Handle>(&what);
}

// Functions of modules, each the address of its name.
class Functions {
 public:
  CUfunction of(const char* name) {
    const std::lock_guard lock(mutex_);
    return reinterpret_cast<CUfunction>(const_cast<std::string*>(&*names_.emplace(name).first));
  }
  const char* name(CUfunction function) {
    const std::lock_guard lock(mutex_);
    for (const std::string& name : names_)
      if (reinterpret_cast<CUfunction>(const_cast<std::string*>(&name)) == function) return name.c_str();
    return "unknown";
  }

 private:
  std::mutex mutex_;
  std::set<std::string> names_;
};

Functions& functions() {
  static auto* const all = new Functions;
  return *all;
}

// The library's own function of a driver's name, whatever version of it is asked for.
void* answered(const char* name) {
  Dl_info own{};
  ::dladdr(&context_of_all, &own);
  static void* library = ::dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  for (const char* version : {"", "_v2", "_v3", "_v4"})
    if (void* function = ::dlsym(library, (std::string(name) + version).c_str())) return function;
  return nullptr;
}

}  // namespace

PHANTOM_API cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                                         unsigned long long,
                                                         cudaDriverEntryPointQueryResult* status) {
  *function = answered(name);
  if (*function == nullptr) say_lacking(name);
  if (status != nullptr)
    *status = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                                cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(name, function, 0, flags, status);
}

PHANTOM_API CUresult cuGetProcAddress_v2(const char* name, void** function, int, cuuint64_t,
                                         CUdriverProcAddressQueryResult* status) {
  *function = answered(name);
  if (*function == nullptr) say_lacking(name);
  if (status != nullptr)
    *status = *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

PHANTOM_API CUresult cuGetExportTable(const void** table, const CUuuid*) {
  *table = nullptr;
  return CUDA_ERROR_NOT_SUPPORTED;
}

PHANTOM_API CUresult cuInit(unsigned) {
  return Runtime::get().visible() > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

PHANTOM_API CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = cudaGetErrorString(static_cast<cudaError_t>(error));
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = cudaGetErrorName(static_cast<cudaError_t>(error));
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuDeviceGetCount(int* count) {
  *count = Runtime::get().visible();
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < Runtime::get().visible() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

PHANTOM_API CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  std::snprintf(name, static_cast<std::size_t>(size), "%s", description().device.name.c_str());
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  std::memcpy(uuid->bytes, uuid_of(Runtime::get().device_of(device)).data(), sizeof uuid->bytes);
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice) {
  *bytes = description().device.memory_bytes;
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      *value = 1;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
      *value = 0;
      return CUDA_SUCCESS;
    default:
      break;
  }
  return static_cast<CUresult>(cudaDeviceGetAttribute(value, static_cast<cudaDeviceAttr>(attribute), device));
}

PHANTOM_API CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = handle_to<CUcontext>(context_of_all);
  return CUDA_SUCCESS;
}

// Active where this process has used the device: LibTorch asks before it makes a context by chance.
PHANTOM_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  *flags = 0;
  *active = has_context(Runtime::get().device_of(device)) ? 1 : 0;
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = handle_to<CUcontext>(context_of_all);
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return cuCtxGetCurrent(context);
}

PHANTOM_API CUresult cuCtxGetDevice(CUdevice* device) {
  *device = current_ordinal();
  return CUDA_SUCCESS;
}

// Triton asks for the size of printf's buffer before it loads its first kernel.
PHANTOM_API CUresult cuCtxGetLimit(std::size_t* value, CUlimit limit) {
  *value = limit == CU_LIMIT_PRINTF_FIFO_SIZE ? std::size_t{1} << 20 : 0;
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuCtxSynchronize() {
  return static_cast<CUresult>(cudaDeviceSynchronize());
}

PHANTOM_API CUresult cuStreamSynchronize(CUstream stream) {
  return static_cast<CUresult>(cudaStreamSynchronize(stream));
}

// Modules: code is taken and never run.
PHANTOM_API CUresult cuModuleLoadData(CUmodule* module, const void*) {
  if (Faults::get().triggered(Fault::kModuleOom, current_device()) != nullptr)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *module = handle_to<CUmodule>(module_of_all);
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*,
                                        void**) {
  return cuModuleLoadData(module, image);
}

PHANTOM_API CUresult cuModuleLoad(CUmodule* module, const char* path) {
  return cuModuleLoadData(module, path);
}

PHANTOM_API CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  *function = functions().of(name);
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuModuleGetGlobal_v2(CUdeviceptr* at, std::size_t* bytes, CUmodule, const char*) {
  void* address = nullptr;
  cudaGetSymbolAddress(&address, nullptr);
  *at = reinterpret_cast<CUdeviceptr>(address);
  if (bytes != nullptr) *bytes = 1 << 16;
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
  *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024
           : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS            ? 32
                                                                : 0;
  return CUDA_SUCCESS;
}

// Takes the bytes that the next kernel of this thread reads and writes: its grid alone does not say.
PHANTOM_API void sweep_phantom_next_kernel(std::int64_t bytes) {
  told_bytes = bytes;
}

PHANTOM_API CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                    unsigned by, unsigned bz, unsigned, CUstream stream, void**, void**) {
  if (const auto error = Runtime::get().begin()) return static_cast<CUresult>(error);
  const std::int64_t bytes = std::exchange(told_bytes, 0);
  if (bytes > 0) ++counters().told_launches, counters().told_bytes += static_cast<std::uint64_t>(bytes);
  const double threads = Grid{gx, gy, gz}.count() * Grid{bx, by, bz}.count();
  if (logs_launches()) log_launch(functions().name(function), threads, static_cast<double>(bytes));
  const KernelTime lasts =
      bytes > 0 ? kernel_time_of_bytes(static_cast<double>(bytes)) : kernel_time(threads);
  return static_cast<CUresult>(run_kernel(stream_of(stream), lasts));
}

PHANTOM_API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                               unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                               CUstream stream, void** parameters) {
  return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, nullptr);
}

PHANTOM_API CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction function, void** parameters,
                                      void** extra) {
  return cuLaunchKernel(function, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY,
                        c->blockDimZ, c->sharedMemBytes, c->hStream, parameters, extra);
}

PHANTOM_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int, std::size_t) {
  *blocks = 2;
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction, const CUlaunchConfig*) {
  *clusters = description().device.multiprocessors / 2;
  return CUDA_SUCCESS;
}
