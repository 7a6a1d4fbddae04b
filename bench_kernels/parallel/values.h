// Values: the weights of every bucket: where they last from step to step, and when the copy that the kernels
// read is there. It owns what lasts (the bucket itself, or a shard, or a wider type, or host memory) and the
// gathers under way; it knows nothing of gradients or updates.
//
// If copies come and go, need() takes storage for a group's buckets and fills it (cast, gather), done()
// gives it back, and the next groups in the order of use are started ahead: by need(), in backward also by
// done() (backward_prefetch). Storage is taken when a gather starts, so that peaks do not depend on timing.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "bench_kernels/model/stage.h"
#include "bench_kernels/parallel/file_values.h"
#include "bench_kernels/parallel/state_plan.h"

namespace sweep::parallel {

class Values {
 public:
  // Lays the parameters out and fills them. REQUIRES: the plan, the mesh and alone outlive it.
  Values(model::Parameters&, const StatePlan&, const Mesh&, comm::Channel& alone, at::TensorOptions);

  void need(std::size_t group, model::Pass);
  void done(std::size_t group, model::Pass);
  // Called before (true) and after each wait for a gather, in need() and finish_spread().
  void watch_waits(std::function<void(bool begins)> watch) { watch_ = std::move(watch); }

  // The part of the lasting values that this rank's optimizer updates.
  at::Tensor part(std::size_t bucket) const;
  // The lasting values that are here: of the whole bucket, or at ZeRO 3 of its part.
  const at::Tensor& lasting(std::size_t bucket) const { return states_[bucket].lasting; }
  // Buckets that the optimizer updates, ascending; the others are frozen.
  std::vector<std::size_t> trained() const;
  // Returns that part of the initial values in fp32, once, for a master copy; undefined if the plan has none.
  at::Tensor take_master(std::size_t bucket) { return std::move(masters_[bucket]); }
  // After the update of a part: sends it to those who keep the whole.
  void start_spread(std::size_t bucket);
  void finish_spread();
  // All values of a bucket, as they last; a collective of the shard group.
  at::Tensor whole(std::size_t bucket) const;

  // Parameters that are in a file (offload disk_parameters), else null: what part() and lasting() give is read only
  // between their arrive() and leave().
  FileValues* in_file() { return file_ ? &*file_ : nullptr; }

  const BucketPeers& peers(std::size_t bucket) const { return peers_[bucket]; }
  std::int64_t bytes() const;  // bytes that last on the device
  // Elements of buckets that more than one group reads: of those that are trained, or frozen.
  std::int64_t shared_elements(bool frozen) const;

 private:
  enum class Copy { kAbsent, kUnderWay, kThere };
  struct State {
    at::Tensor lasting;
    bool copied = false;  // the kernels read a copy
    Copy copy = Copy::kAbsent;
    comm::Pending gather, spread;
    std::size_t readers = 0;  // groups that read it
    std::size_t in_use = 0;   // forward passes whose backward is to come, where the copy is kept for it
  };
  void place(const model::Bucket&);
  comm::Channel& gatherers(std::size_t bucket) const;
  bool kept(const State& s) const { return !plan_.reshard_after_forward || s.readers > 1; }
  void expect(std::size_t group);
  void take_from_file(std::size_t bucket);
  void start_copy(std::size_t bucket);
  void drop_copy(std::size_t bucket);
  void wait_for(comm::Pending&);

  model::Parameters& parameters_;
  const StatePlan& plan_;
  const Mesh& mesh_;
  comm::Channel& alone_;
  std::vector<BucketPeers> peers_;
  std::vector<State> states_;
  std::vector<at::Tensor> masters_;
  mutable std::optional<FileValues> file_;
  std::vector<std::vector<std::size_t>> read_by_;  // buckets, per group
  std::size_t backward_at_ = 0;                    // the group of the last backward
  std::function<void(bool)> watch_;
};

}  // namespace sweep::parallel
