// Gradients: room for every bucket's gradients, and how they become this rank's part of the average over the
// data-parallel ranks. It owns the buffers and the reductions under way; it knows nothing of values or
// updates.
//
// Gradients live from the step's first backward, which makes them bucket by bucket, until the next step begins:
// its first forward holds none. Buckets leave as soon as backward has completed them (with backward_prefetch post
// when their group's is over), in the same order on every rank of their groups. At ZeRO 0 and 1 the buffers stay and
// the reduction is that of the step's last backward. At ZeRO 2 and 3 a bucket has room for one backward only:
// each micro-step reduce-scatters into the shard, which is made then, and on top of it (as DeepSpeed's stage 2
// does), one bucket under way at a time, so that the peak does not depend on timing. What sums beyond the
// average (BucketPeers:: sums) and copies of shards are left for finish(), on the shard.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "bench_kernels/model/stage.h"
#include "bench_kernels/parallel/state_plan.h"
#include "bench_kernels/parallel/values.h"

namespace sweep::parallel {

class Gradients {
 public:
  // After the parameters are laid out.
  Gradients(model::Parameters&, const StatePlan&, const Values&);

  void begin_step();               // frees the last step's
  void begin_backward(bool last);  // last: of the step
  void need(std::size_t group, model::Pass);
  void ready(model::Parameters::Id);
  void done();  // a group's backward is over: what waited for that leaves
  // Called before (true) and after each wait for a reduction.
  void watch_waits(std::function<void(bool begins)> watch) { watch_ = std::move(watch); }
  void settle_flight();  // waits for the bucket under way
  // Waits for everything; the parts are then the average over all tokens of the step.
  void finish();

  // Undefined for what is frozen, and until a backward made it.
  at::Tensor part(std::size_t bucket) const;
  // The whole bucket, of the parts after finish(); a collective of the shard group.
  at::Tensor whole(std::size_t bucket) const;
  // The gradients that stay from the last backward until the next step begins: shards, or whole buckets.
  std::vector<at::Tensor> kept() const;

 private:
  struct State {
    bool frozen = false;      // has no gradients
    std::size_t missing = 0;  // stacks without their gradient in this backward
    comm::Pending reduction;
    at::Tensor shard;       // ZeRO 2 and 3: the sum of this step's micro-steps
    at::Tensor addition;    // gradient of a later micro-step, until it is added to the shard
    bool reducing = false;  // under way, to be settled
    std::vector<std::pair<std::int64_t, std::int64_t>> gaps;  // padding: offset, size
  };
  void begin_round();
  void make_room(std::size_t bucket);
  void launch(std::size_t bucket);
  void settle(std::size_t bucket);

  model::Parameters& parameters_;
  const StatePlan& plan_;
  const Values& values_;
  std::vector<State> states_;
  std::vector<bool> seen_;  // per stack, in this round
  std::vector<std::vector<std::size_t>> read_by_;
  std::vector<std::size_t> waiting_;   // complete buckets that leave when their group's backward is over
  std::optional<std::size_t> flight_;  // ZeRO 2 and 3: the bucket under way
  bool last_ = false;
  std::function<void(bool)> watch_;
};

}  // namespace sweep::parallel
