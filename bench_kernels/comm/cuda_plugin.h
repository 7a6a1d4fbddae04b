// The GPU plug-in: everything that needs CUDA or NCCL, in one module (libsweep_cuda.so beside the program)
// that is loaded only on a machine with a GPU, so that the program starts and runs without a driver. This
// header is the whole interface.
//
// REQUIRES: cuda_plugin() is first called before anything asks LibTorch about CUDA (its answer "none" would
// be kept for good).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "bench_kernels/comm/group.h"
#include "bench_kernels/kernels/device_ops.h"

namespace sweep::comm {

struct CudaStats {
  std::int64_t current = 0, peak_allocated = 0, peak_reserved = 0;  // bytes of the caching allocator
  std::int64_t retries = 0, ooms = 0;
  std::int64_t asked = 0;  // size of the last allocation refused; 0: none was
};

struct CudaDevice {
  std::string name;
  std::string compute_capability;  // "9.0"
  std::int64_t memory_bytes = 0;
};

// The driver's state after something failed.
struct CudaCondition {
  bool answers = false;         // it still does; false: an error sticks, and the memory is not known
  std::int64_t free_bytes = 0;  // free memory of the device, whoever holds the rest
  bool cublas = false;          // a cuBLAS handle is there or could be made
};

// Work on the device that was captured once and is launched as a whole.
class CudaGraph {
 public:
  virtual ~CudaGraph() = default;
  virtual void launch() = 0;  // launches it on the current stream
};
// A memory pool that graphs share; they must be launched in the order of their captures.
using CudaGraphPool = std::pair<std::uint64_t, std::uint64_t>;

// A table of functions; a member is never null. Errors come out as C++ exceptions (both sides use one
// LibTorch).
struct CudaPlugin {
  static constexpr int kVersion = 5;
  int version;
  int (*device_count)();
  void (*set_device)(int device);
  void (*synchronize)(int device);
  BackendPtr (*make_nccl)(const GroupOptions&);
  CudaDevice (*describe)(int device);
  CudaStats (*stats)(int device);
  void (*reset_peak)(int device);
  void (*set_cap)(int device,
                  std::int64_t bytes);     // limits what the allocator reserves, not what is allocated
  CudaCondition (*condition)(int device);  // never throws
  std::string (
      *phantom)();  // counters of phantom GPUs as a JSON object (docs/phantom.md); empty: GPUs are real
  std::string (*trace)();            // NCCL's flight recorder as JSON; from any thread
  kernels::device::Launcher launch;  // a fused kernel, compiled when it is first needed (docs/kernels.md)
  CudaGraphPool (*graph_pool)();     // frees the allocator's cache and makes a pool
  // Calls `work`, whose launches are captured and not run. Collectives must have been waited for when it returns.
  std::unique_ptr<CudaGraph> (*capture)(const CudaGraphPool&, const std::function<void()>& work);
};

// The plug-in, loaded at the first call; nullptr where there is no GPU. Throws c10::NotImplementedError where
// there is one and the module is missing or of another build.
const CudaPlugin* cuda_plugin();

}  // namespace sweep::comm
