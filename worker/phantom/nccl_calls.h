// Finds the phantom's objects by NCCL's handles.
#pragma once
#include "worker/phantom/export.h"
#include "worker/phantom/nccl_comm.h"

namespace sweep::phantom {

inline CommunicatorPtr& comm_of(ncclComm_t handle) {
  return *reinterpret_cast<CommunicatorPtr*>(handle);
}

// ncclInvalidUsage: a message with a rank that is not started, and whose part no started rank of the group does.
ncclResult_t no_such_peer(const Communicator&, int peer);

// ncclUnhandledCudaError, with the text that NCCL gives this error.
ncclResult_t cuda_failure(int error);

}  // namespace sweep::phantom
