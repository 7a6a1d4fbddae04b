// From NCCL's handles to the phantom's objects.
#pragma once
#include "worker/phantom/export.h"
#include "worker/phantom/nccl_comm.h"

namespace sweep::phantom {

inline CommunicatorPtr& comm_of(ncclComm_t handle) {
  return *reinterpret_cast<CommunicatorPtr*>(handle);
}

}  // namespace sweep::phantom
