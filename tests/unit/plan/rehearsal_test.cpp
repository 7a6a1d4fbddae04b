// Which ranks a rehearsal starts.
#include "orchestrator/plan/rehearsal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench_kernels/shape/parallel_dims.h"

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

}  // namespace
}  // namespace sweep::plan
