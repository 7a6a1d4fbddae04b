// NCCL's operations: put on their stream, alone or as a group.
#include "worker/phantom/nccl_calls.h"

#include <unistd.h>

#include <utility>

#include "worker/phantom/faults.h"
#include "worker/phantom/runtime.h"

using namespace sweep::phantom;

namespace {

struct Group {
  int depth = 0;
  std::vector<std::pair<Stream*, std::vector<Part>>> parts;  // grouped by stream, in the order they came
};
thread_local Group group;

void put(Stream& stream, std::vector<Part> parts) {
  ++counters().launches;
  // The nodes of a communicator that is still being made are not known yet: as on the nodes of those who have come.
  const Ns lasts = group_time(parts);
  for (Part& part : parts) part.lasts = lasts;
  Work work;
  work.meeting = std::make_shared<Batch>(std::move(parts));
  Clocks::get().add(stream, std::move(work), description().profile.nccl_host);
}

void end_group() {
  for (auto& [stream, parts] : std::exchange(group.parts, {})) put(*stream, std::move(parts));
}

// Applies the injected faults to this operation.
void inject_faults(Part& part) {
  Faults& faults = Faults::get();
  if (!faults.any()) return;
  const int device = part.comm->device;
  if (faults.triggered(Fault::kHostHang, device) != nullptr)
    for (;;) ::pause();
  part.never_met = faults.triggered(Fault::kHang, device) != nullptr;
  if (faults.triggered(Fault::kNcclError, device) != nullptr) {
    part.never_met = true;
    const auto held = Clocks::get().lock();
    part.comm->own_error = ncclRemoteError;
  }
}

ncclResult_t call(ncclComm_t comm, cudaStream_t handle, const void* from, void* to,
                  const Operation& operation) {
  if (const auto error = Runtime::get().begin()) return cuda_failure(error);
  if (comm == nullptr) return ncclInvalidArgument;
  Part part;
  part.comm = comm_of(comm);
  if (operation.root < 0 || operation.root >= part.comm->ranks) return ncclInvalidArgument;
  const bool message = operation.kind == Kind::kSend || operation.kind == Kind::kRecv;
  if (message && part.comm->roles.is_stray(operation.root)) return no_such_peer(*part.comm, operation.root);
  if (!part.comm->connect()) return ncclUnhandledCudaError;
  part.from = from;
  part.to = to;
  part.operation = operation;
  const auto kind = static_cast<std::size_t>(operation.kind);
  ++counters().collectives[kind];
  counters().collective_bytes[kind] += payload_of(operation, part.comm->ranks);
  inject_faults(part);
  Stream* stream = &stream_of(handle);
  if (group.depth == 0) {
    put(*stream, {std::move(part)});
    return ncclSuccess;
  }
  for (auto& [of, parts] : group.parts)
    if (of == stream) {
      parts.push_back(std::move(part));
      return ncclSuccess;
    }
  group.parts.emplace_back(stream, std::vector<Part>{});
  group.parts.back().second.push_back(std::move(part));
  return ncclSuccess;
}

}  // namespace

PHANTOM_API ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

PHANTOM_API ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth == 0) end_group();
  return ncclSuccess;
}

PHANTOM_API ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* info) {
  if (group.depth > 0) --group.depth;
  group.parts.clear();
  if (info != nullptr) info->estimatedTime = 0;
  return ncclSuccess;
}

PHANTOM_API ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                                       ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, from, to, {Kind::kAllReduce, type, op, 0, count});
}

PHANTOM_API ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                                    ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, from, to, {Kind::kReduce, type, op, root, count});
}

PHANTOM_API ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type,
                                       int root, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, from, to, {Kind::kBroadcast, type, 0, root, count});
}

PHANTOM_API ncclResult_t ncclBcast(void* at, std::size_t count, ncclDataType_t type, int root,
                                   ncclComm_t comm, cudaStream_t stream) {
  return ncclBroadcast(at, at, count, type, root, comm, stream);
}

PHANTOM_API ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, from, to, {Kind::kReduceScatter, type, op, 0, count});
}

PHANTOM_API ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                                       ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, from, to, {Kind::kAllGather, type, 0, 0, count});
}

PHANTOM_API ncclResult_t ncclAlltoAll(const void* from, void* to, std::size_t count, ncclDataType_t type,
                                      ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, from, to, {Kind::kAllToAll, type, 0, 0, count});
}

PHANTOM_API ncclResult_t ncclGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                                    int root, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, from, to, {Kind::kGather, type, 0, root, count});
}

PHANTOM_API ncclResult_t ncclScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                                     int root, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, from, to, {Kind::kScatter, type, 0, root, count});
}

PHANTOM_API ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer,
                                  ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, from, nullptr, {Kind::kSend, type, 0, peer, count});
}

PHANTOM_API ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                                  cudaStream_t stream) {
  return call(comm, stream, nullptr, to, {Kind::kRecv, type, 0, peer, count});
}
