// The faults that SWEEP_PHANTOM_FAULTS asks for, "KIND[:KEY=NUMBER]...[;KIND...]" (docs/phantom.md,
// "Faults"): what they are, and the reading of that text. It keeps no state.
#pragma once
#include <cstdint>
#include <deque>
#include <string_view>

namespace sweep::phantom {

enum class Fault : int {
  kMallocOom,      // the driver refuses every cudaMalloc and cuMemCreate from the n-th on
  kCublasOom,      // the n-th cuBLAS call: CUBLAS_STATUS_ALLOC_FAILED
  kNcclOom,        // the n-th communicator: ncclUnhandledCudaError, out of memory
  kLaunchFailure,  // the n-th kernel accesses an illegal address: every later call fails
  kNcclError,      // the n-th NCCL operation: ncclRemoteError, asynchronously
  kHang,           // the n-th NCCL operation is never met by this rank
  kHostHang,       // the n-th NCCL operation's call never returns
  kAbortHang,      // the n-th communicator's abort never returns
  kXid,            // strikes at the n-th kernel
  kSlowGpu,
  kSlowLink,
  kModuleOom,  // the n-th load of a module of kernels: CUDA_ERROR_OUT_OF_MEMORY
  kCount
};

struct FaultRule {
  Fault fault = Fault::kMallocOom;
  std::int64_t at = 1;         // the n-th
  std::int64_t times = 1;      // how many from there on
  int rank = -1, device = -1;  // -1: any
  double factor = 2;
  std::uint64_t code = 79;
};

// Throws std::runtime_error with the reason: a kind or key that there is none of, or a number that the key
// cannot have.
std::deque<FaultRule> fault_rules(std::string_view text);

}  // namespace sweep::phantom
