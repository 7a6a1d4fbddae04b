#include "bench_kernels/comm/group.h"

#include <c10/util/Exception.h>

namespace sweep::comm {

std::string resolved_backend(const Trial& trial, bool on_cuda) {
  if (trial.backend != "auto") return trial.backend;
  if (on_cuda) return "nccl";
  return trial.nodes > 1 ? "gloo" : "shm";
}

BackendPtr make_backend(const std::string& resolved, const GroupOptions& options) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      resolved != "shm" || !options.rendezvous,
      "the backend 'shm' is for ranks of one machine; across nodes there are gloo and nccl");
  if (resolved == "shm") return make_shm(options);
  if (resolved == "gloo") return options.on_cuda ? make_staged(make_gloo(options)) : make_gloo(options);
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
