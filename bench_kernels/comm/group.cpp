#include "bench_kernels/comm/group.h"

#include <c10/util/Exception.h>

namespace sweep::comm {

std::string resolved_backend(const Trial& trial, bool on_cuda) {
  if (trial.backend != "auto") return trial.backend;
  return on_cuda ? "nccl" : "shm";
}

BackendPtr make_backend(const std::string& resolved, const GroupOptions& options) {
  if (resolved == "shm") return make_shm(options);
  if (resolved == "gloo") return make_gloo(options);
  if (resolved == "nccl") return make_nccl(options);
  TORCH_CHECK_NOT_IMPLEMENTED(false, "unknown communication backend '", resolved,
                              "'; there are shm, gloo and nccl");
}

void wait(c10d::Work& work) {
  try {
    work.wait();
  } catch (const c10::Error&) {
    throw;
  } catch (const std::exception& error) {  // Gloo's own exceptions, which its headers would name
    TORCH_CHECK_WITH(DistBackendError, false, error.what());
  }
}

}  // namespace sweep::comm
