// A group is a set of ranks with one c10d::Backend between them, called directly (never through the
// dispatcher), so that every backend works on every device it can, meta tensors included. This header makes
// them; nothing here knows what is sent.
//
// Names (axis `backend`): shm, this program's own, for ranks of one machine (shm_backend.h); gloo,
// LibTorch's, as a cross-check, across machines, and for ranks that share a GPU, which NCCL refuses; nccl,
// through the GPU plug-in (cuda_plugin.h); fake, which sends nothing (dry runs of one rank).
#pragma once
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "schema/trial.h"

namespace sweep::comm {

using BackendPtr = c10::intrusive_ptr<c10d::Backend>;

struct GroupOptions {
  // Ranks on several nodes find each other through this store; `address` is this node's, for the others.
  // Null: all ranks are on one node and use files in the directory.
  c10::intrusive_ptr<c10d::Store> rendezvous;
  std::string address;
  std::string directory;        // a shared folder in memory, without files of earlier groups of this name
  std::string name = "world";   // tells groups in one directory apart
  std::string label = "world";  // the group's name for people: its dimension
  std::vector<std::int64_t> members;  // its ranks, as the world counts them
  // NCCL: split the group from this one. REQUIRES: every rank of the parent makes a group now, of members
  // that no other rank's group has. Null: the members make it alone.
  BackendPtr parent;
  // A rehearsal starts one rank for each role, without this rank's peers: phantom NCCL then treats the peers
  // as mirrors of this rank, on so many nodes. 0: the members are there.
  int mirrored_on_nodes = 0;
  int device = 0;  // the index of this rank's GPU
  int rank = 0;
  int world = 1;
  bool on_cuda = false;  // tensors are on a GPU
  // Limit for joining, and for each collective that has no limit of its own.
  std::chrono::milliseconds timeout{600'000};
};

// Resolves the trial's `backend` axis on this device: "auto" is nccl on CUDA; on the CPU it is shm within a
// node and gloo across nodes.
CommBackend resolved_backend(const Trial&, bool on_cuda);
// Joins the group; returns once every rank has. Throws c10::DistError when a peer is lost or late,
// c10::NotImplementedError for a backend this build or machine does not have.
BackendPtr make_backend(CommBackend resolved, const GroupOptions&);

// Returns the store in which the ranks of this group find each other; `backend` keeps several backends of one
// name apart. It is inline because the GPU plug-in links no room.
inline c10::intrusive_ptr<c10d::Store> group_store(const GroupOptions& options, const std::string& backend) {
  const std::string name = backend + "_" + options.name;
  if (options.rendezvous) return c10::make_intrusive<c10d::PrefixStore>(name, options.rendezvous);
  return c10::make_intrusive<c10d::FileStore>(options.directory + "/" + name, options.world);
}

BackendPtr make_shm(const GroupOptions&);
BackendPtr make_gloo(const GroupOptions&);
BackendPtr make_nccl(const GroupOptions&);
// A backend of host memory made to serve device tensors: what is sent is copied to the host first, what
// arrives is copied to the device in wait(). Slow, and right wherever the backend is: Gloo's own CUDA support
// lacks most collectives.
BackendPtr make_staged(BackendPtr);
// One rank of a group of any size, alone: every collective succeeds at once and leaves its buffers as they
// are.
BackendPtr make_fake(int rank, int world);

// Waits for the work; whatever a backend throws because a peer is lost or late comes out as a c10::DistError.
void wait(c10d::Work&);

}  // namespace sweep::comm
