// NCCL's communicators: made, split, shrunk, aborted, asked.
#include <unistd.h>

#include <algorithm>
#include <random>

#include "worker/phantom/bell.h"
#include "worker/phantom/counters.h"
#include "worker/phantom/faults.h"
#include "worker/phantom/nccl_calls.h"
#include "worker/phantom/runtime.h"
#include "worker/phantom/shared_file.h"

using namespace sweep::phantom;

namespace {

thread_local std::string last_message;

ncclResult_t make(ncclComm_t* out, const std::string& name, int ranks, int rank, const ncclConfig_t* config,
                  const std::optional<ToldGroup>& told = std::nullopt) {
  *out = nullptr;
  if (const auto error = Runtime::get().begin()) return cuda_failure(error);
  if (ranks < 1 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  if (told && told->roles.ranks() != ranks) return ncclInvalidUsage;
  const bool blocking = config == nullptr || config->blocking != 0;  // "undefined" blocks
  CommunicatorPtr made;
  const ncclResult_t result = Communicator::make(made, name, ranks, rank, told, blocking);
  if (result == ncclUnhandledCudaError) return cuda_failure(cudaErrorMemoryAllocation);
  if (made) *out = reinterpret_cast<ncclComm_t>(new CommunicatorPtr(made));
  return result;
}

// A part of a communicator all of whose ranks are started: its ranks are started too, whatever is said of new groups.
ToldGroup all_there(int ranks, int rank) {
  return {rank, 0, GroupRoles::all_started(ranks)};
}

// The new ranks of those with this rank's color, by key, then by rank.
ncclResult_t split(const CommunicatorPtr& parent, int color, int key, ncclComm_t* out,
                   const ncclConfig_t* config) {
  const std::uint64_t number = parent->splits++;
  const std::string name = parent->name + "-" + std::to_string(number) + "." + std::to_string(color);
  if (parent->roles.started() < parent->ranks) {  // the colors of the others are not known
    *out = nullptr;
    if (color == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
    const auto told = next_told_group();
    return !told || told->rank < 0 ? ncclInvalidUsage
                                   : make(out, name, told->roles.ranks(), told->rank, config, told);
  }
  if (parent->mirrored()) {  // the group has one rank
    *out = nullptr;
    return color == NCCL_SPLIT_NOCOLOR ? ncclSuccess : make(out, name, 1, 0, config, all_there(1, 0));
  }
  Segment& segment = *parent->segment;
  Member& me = segment.member(parent->rank);
  me.split[number % 2] = {color, key};
  me.splits = number + 1;
  segment.ring_all();
  Clocks::get().wait_until([&] {
    for (int rank = 0; rank < parent->ranks; ++rank)
      if (segment.member(rank).splits <= number) return parent->aborted;
    return true;
  });
  *out = nullptr;
  if (parent->aborted) return ncclInvalidUsage;
  std::vector<std::pair<int, int>> members;  // key, rank in the parent
  for (int rank = 0; rank < parent->ranks; ++rank)
    if (segment.member(rank).split[number % 2].color == color)
      members.emplace_back(segment.member(rank).split[number % 2].key, rank);
  if (color == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
  std::sort(members.begin(), members.end());
  const auto mine = std::find(members.begin(), members.end(), std::pair(key, parent->rank)) - members.begin();
  const auto ranks = static_cast<int>(members.size()), rank = static_cast<int>(mine);
  return make(out, name, ranks, rank, config, all_there(ranks, rank));
}

}  // namespace

ncclResult_t sweep::phantom::cuda_failure(int error) {
  last_message = "Cuda failure " + std::to_string(error) + " '" +
                 cudaGetErrorString(static_cast<cudaError_t>(error)) + "'";
  return ncclUnhandledCudaError;
}

ncclResult_t sweep::phantom::no_such_peer(const Communicator& comm, int peer) {
  last_message = "a message of rank " + std::to_string(comm.rank) + " of " + std::to_string(comm.ranks) +
                 " with rank " + std::to_string(peer) +
                 ", which is of another pipeline stage and not started: the rehearsal took stages for blocks "
                 "of successive ranks";
  say(last_message);
  return ncclInvalidUsage;
}

PHANTOM_API ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

PHANTOM_API ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  remove_left_over("nccl-");
  std::random_device random;
  for (char& byte : id->internal) byte = static_cast<char>(random());
  return ncclSuccess;
}

PHANTOM_API ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                                ncclConfig_t* config) {
  return make(comm, name_of(id), ranks, rank, config, told_group(id));
}

PHANTOM_API ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return make(comm, name_of(id), ranks, rank, nullptr, told_group(id));
}

PHANTOM_API ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int,
                                                  ncclUniqueId* ids, ncclConfig_t* config) {
  return make(comm, name_of(*ids), ranks, rank, config, told_group(*ids));
}

PHANTOM_API ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* out,
                                       ncclConfig_t* config) {
  return split(comm_of(comm), color, key, out, config);
}

PHANTOM_API ncclResult_t ncclCommShrink(ncclComm_t comm, int* excluded, int count, ncclComm_t* out,
                                        ncclConfig_t* config, int) {
  const CommunicatorPtr parent = comm_of(comm);
  *out = nullptr;
  if (parent->roles.started() < parent->ranks)
    return ncclInvalidUsage;  // who does the part of whom is not known
  std::string name = parent->name + "-without";
  for (int i = 0; i < count; ++i) name += "." + std::to_string(excluded[i]);
  const int before =
      static_cast<int>(std::count_if(excluded, excluded + count, [&](int r) { return r < parent->rank; }));
  const int ranks = parent->ranks - count, rank = parent->rank - before;
  return make(out, name, ranks, rank, config, all_there(ranks, rank));
}

PHANTOM_API ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete reinterpret_cast<CommunicatorPtr*>(comm);
  return ncclSuccess;
}

// Its operations end at once; the handle is gone.
PHANTOM_API ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (Faults::get().triggered(Fault::kAbortHang, comm_of(comm)->device) != nullptr)
    for (;;) ::pause();
  {
    auto held = Clocks::get().lock();
    comm_of(comm)->aborted = true;
    Clocks::get().progress(held);
  }
  Bell::ring(Bell::mine().number());
  return ncclCommDestroy(comm);
}

PHANTOM_API ncclResult_t ncclCommRevoke(ncclComm_t comm, int) {
  auto held = Clocks::get().lock();
  comm_of(comm)->aborted = true;
  Clocks::get().progress(held);
  return ncclSuccess;
}

PHANTOM_API ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const auto held = Clocks::get().lock();
  *error = comm_of(comm)->error();
  return ncclSuccess;
}

PHANTOM_API ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  *count = comm_of(comm)->ranks;
  return ncclSuccess;
}

PHANTOM_API ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  *rank = comm_of(comm)->rank;
  return ncclSuccess;
}

PHANTOM_API ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  *device = Runtime::get().ordinal_of(comm_of(comm)->device);
  return ncclSuccess;
}

PHANTOM_API const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

PHANTOM_API const char* ncclGetLastError(ncclComm_t comm) {
  if (comm != nullptr && !comm_of(comm)->mirrored() && comm_of(comm)->segment->shared().error != 0)
    last_message = comm_of(comm)->segment->shared().message;
  return last_message.c_str();
}

PHANTOM_API ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                                  ncclScalarResidence_t, ncclComm_t comm) {
  const auto held = Clocks::get().lock();
  auto& scalars = comm_of(comm)->scalars;
  scalars.push_back(number_of(type, scalar));
  *op = static_cast<ncclRedOp_t>(ncclNumOps + static_cast<int>(scalars.size()) - 1);
  return ncclSuccess;
}

PHANTOM_API ncclResult_t ncclMemAlloc(void** at, std::size_t bytes) {
  return cudaMalloc(at, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

PHANTOM_API ncclResult_t ncclMemFree(void* at) {
  return cudaFree(at) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

// Registered buffers make transfers faster on a GPU; here they change nothing.
PHANTOM_API ncclResult_t ncclCommRegister(const ncclComm_t, void*, std::size_t, void** handle) {
  *handle = nullptr;
  return ncclSuccess;
}

PHANTOM_API ncclResult_t ncclCommWindowRegister(ncclComm_t, void*, std::size_t, ncclWindow_t* window, int) {
  *window = nullptr;
  return ncclSuccess;
}
