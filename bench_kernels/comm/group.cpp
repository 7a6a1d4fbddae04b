#include "bench_kernels/comm/group.h"

#include <c10/util/Exception.h>

namespace sweep::comm {

CommBackend resolved_backend(const Trial& trial, bool on_cuda) {
  if (trial.backend != CommBackend::kAuto) return trial.backend;
  if (on_cuda) return CommBackend::kNccl;
  return trial.nodes > 1 ? CommBackend::kGloo : CommBackend::kShm;
}

BackendPtr make_backend(CommBackend resolved, const GroupOptions& options) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      resolved != CommBackend::kShm || !options.rendezvous,
      "the backend 'shm' is for ranks of one machine; across nodes there are gloo and nccl");
  switch (resolved) {
    case CommBackend::kShm:
      return make_shm(options);
    case CommBackend::kGloo:
      return options.on_cuda ? make_staged(make_gloo(options)) : make_gloo(options);
    case CommBackend::kNccl:
      return make_nccl(options);
    case CommBackend::kAuto:
      break;
  }
  throw std::invalid_argument("backend auto was not resolved; call resolved_backend() first");
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
