// Faults by instruction: SWEEP_PHANTOM_FAULTS, "KIND[:KEY=VALUE]...[;KIND...]" (docs/phantom.md, "Faults").
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <string>

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
  kXid,            // at the n-th kernel
  kSlowGpu,
  kSlowLink,
  kCount
};

struct FaultRule {
  Fault fault = Fault::kMallocOom;
  std::int64_t at = 1;         // the n-th
  std::int64_t times = 1;      // that many from there on
  int rank = -1, device = -1;  // -1: any
  double factor = 2;
  std::uint64_t code = 79;
};

class Faults {
 public:
  static Faults& get();
  // Counts one more of what `fault` strikes; the rule that strikes it here, or null.
  const FaultRule* strikes(Fault fault, int device);
  double factor(Fault fault, int device) const;  // product of the rules' factors; 1: none
  bool any() const { return !rules_.empty(); }

  static std::deque<FaultRule> parse(const std::string& text);  // throws std::exception with the reason

 private:
  explicit Faults(std::deque<FaultRule> rules) : rules_(std::move(rules)) {}
  std::deque<FaultRule> rules_;
  std::atomic<std::int64_t> seen_[static_cast<int>(Fault::kCount)] = {};
};

}  // namespace sweep::phantom
