// HostKernels: while it lives, the step on CPU tensors takes the fused kernels of a device, which the CPU shim runs, in this
// process and in those it forks; it counts their launches. It refuses a type or a kernel that no device has.
#pragma once
#include <map>
#include <string>

#include "bench_kernels/kernels/ops.h"
#include "schema/trial.h"

namespace sweep::testing {

class HostKernels {
 public:
  HostKernels();
  ~HostKernels();
  HostKernels(const HostKernels&) = delete;
  HostKernels& operator=(const HostKernels&) = delete;
  // Since this was made, by kernel, of all these processes.
  std::map<std::string, i64> launches() const;

 private:
  kernels::Path before_;
};

}  // namespace sweep::testing
