// Device: what a rank computes on, with one meaning of "allocated bytes" for both kinds: the caching
// allocator's statistics on CUDA, the counting allocator's on the CPU. It owns the process's choice and its
// cap; there is one per process.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <optional>

#include "schema/trial.h"
#include "worker/rank/exception_record.h"

namespace sweep::rank {

struct DeviceStats {
  i64 current = 0, peak = 0;
  std::optional<i64> peak_reserved;  // CUDA only: the counting allocator reserves nothing
  i64 retries = 0, ooms = 0;
  std::optional<i64> asked;  // size of the last allocation refused
};

class Device {
 public:
  // The CPU for hardware "cpu", else GPU number local_rank; with backend gloo ranks share what GPUs there
  // are. Throws c10::NotImplementedError where that GPU is not there.
  Device(const Trial&, i64 local_rank);
  c10::Device place() const { return place_; }
  bool is_cuda() const { return place_.is_cuda(); }
  // Forgets the peak and sets the trial's cap on what is allocated from now on.
  void begin(const Trial&) const;
  DeviceStats stats() const;
  // A stretch of the work with a peak of its own; stats() goes on with the highest of all.
  void begin_stretch();
  i64 peak_of_stretch() const { return counted().peak; }
  // Random values, the same at every call, to time products with: a GPU multiplies constants faster, since they
  // draw less power.
  at::Tensor random_matrix(i64 rows, i64 columns, at::ScalarType type) const;
  FailureFacts facts() const;  // asked after something failed; never throws

 private:
  DeviceStats counted() const;  // since the last stretch began

  c10::Device place_;
  DeviceStats before_;  // the peaks before it
};

}  // namespace sweep::rank
