// Which ranks a rehearsal starts.
#include "orchestrator/plan/rehearsal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench_kernels/shape/parallel_dims.h"
#include "tests/support/model_trial.h"

namespace sweep::plan {
namespace {

using ::testing::ElementsAre;

Trial layout(i64 dp, i64 tp, i64 pp, i64 nodes) {
  Trial t;
  t.dp = dp, t.tp = tp, t.pp = pp, t.nodes = nodes;
  t.gpus_per_node = dp * tp * pp / nodes;
  return t;
}

TEST(Rehearsal, StartsEveryRankOfASmallWorld) {
  EXPECT_THAT(*rehearsed_ranks(layout(2, 2, 1, 1), 4), ElementsAre(0, 1, 2, 3));
}

TEST(Rehearsal, StartsOneRankForEachStageOfALargeWorld) {
  const Trial t = layout(8, 8, 8, 64);
  const auto ranks = *rehearsed_ranks(t, 8);
  ASSERT_EQ(ranks.size(), 8);
  const auto dims = *shape::ParallelDims::make(t);
  for (i64 stage = 0; stage < 8; ++stage)
    EXPECT_EQ(dims.place(ranks[static_cast<std::size_t>(stage)]), (shape::Place{0, 0, 0, stage}));
}

TEST(Rehearsal, RefusesDegreesThatMakeNoWorld) {
  Trial t = layout(2, 2, 1, 1);
  t.gpus_per_node = 3;
  EXPECT_FALSE(rehearsed_ranks(t, 8).has_value());
}

// GPT-2's 124,439,808 parameters (Radford et al. 2019), eight bytes of moments each; masters and gradients are pinned.
TEST(Rehearsal, CountsTheHostMemoryOfWhatTheHostUpdates) {
  Trial t = model_trial("gpt2", "h100-sxm-80gb", 1, 2);
  t.precision = Precision::kBf16Master;
  EXPECT_EQ(rehearsed_host_bytes(t, 8), 0);
  for (const Offload offload : {Offload::kOptimizer, Offload::kParameters}) {
    t.offload = offload;
    EXPECT_NEAR(rehearsed_host_bytes(t, 8), 2 * 8.0 * 124439808, 0.01 * 2e9);
    EXPECT_NEAR(rehearsed_host_bytes(t, 1), 8.0 * 124439808, 0.01 * 1e9);  // one rank stands for both
  }
  t.zero = 2;
  EXPECT_NEAR(rehearsed_host_bytes(t, 8), 8.0 * 124439808, 0.01 * 1e9);  // each rank has half
  t.offload = Offload::kDisk;
  EXPECT_EQ(rehearsed_host_bytes(t, 8), 0);
}

}  // namespace
}  // namespace sweep::plan
