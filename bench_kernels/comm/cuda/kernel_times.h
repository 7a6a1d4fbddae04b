// KernelTimes: how long each fused kernel of this process took on the GPU, and what it moved, in the JSON file that
// SWEEP_KERNEL_TIMES names: {"kernels": [{kernel, type, launches, ms, bytes, best_ms, best_bytes}]}; the best launch moved most
// bytes in its time. The first three launches of a kernel are left out: they load its code and find the GPU's clocks low.
// Two events around each launch; the file is written anew after each 64 launches, so that the last of a process are
// missing. For one rank, and without CUDA graphs.
#pragma once
#include <ATen/cuda/CUDAEvent.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench_kernels/kernels/device_ops.h"

namespace sweep::cuda {

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

}  // namespace sweep::cuda
