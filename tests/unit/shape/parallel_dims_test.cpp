#include "bench_kernels/shape/parallel_dims.h"

#include <gtest/gtest.h>

#include <limits>

namespace sweep::shape {
namespace {

TEST(ParallelDims, WorldIsTheProduct) {
  Trial t;
  t.nodes = 2;
  t.gpus_per_node = 8;
  t.dp = 2;
  t.tp = 4;
  t.pp = 2;
  ASSERT_TRUE(ParallelDims::make(t).has_value());
  EXPECT_EQ(ParallelDims::make(t)->world(), 16);
}

TEST(ParallelDims, RanksThatShareAKeyValueHeadAreNeighbours) {
  Trial t;
  t.gpus_per_node = 16;
  t.dp = 2, t.tp = 8, t.spec.kv_heads = 2;
  const auto dims = *ParallelDims::make(t);
  EXPECT_EQ(dims.group(Dimension::kKeyValue, 1), (std::vector<i64>{0, 1, 2, 3}));
  EXPECT_EQ(dims.group(Dimension::kKeyValue, 15), (std::vector<i64>{12, 13, 14, 15}));
  t.spec.kv_heads = 8;
  EXPECT_EQ(ParallelDims::make(t)->group(Dimension::kKeyValue, 5), (std::vector<i64>{5}));
}

TEST(ParallelDims, AnExpertGroupLiesInAShardSet) {
  Trial t;
  t.gpus_per_node = t.dp = 8, t.ep = 2, t.dp_shard = 4;
  const auto dims = *ParallelDims::make(t);
  EXPECT_EQ(dims.group(Dimension::kShard, 5), (std::vector<i64>{4, 5, 6, 7}));
  EXPECT_EQ(dims.group(Dimension::kExpert, 5), (std::vector<i64>{4, 5}));
  EXPECT_EQ(dims.group(Dimension::kExpertData, 5), (std::vector<i64>{5, 7})) << "those of its set";
  EXPECT_EQ(dims.group(Dimension::kReplicate, 5), (std::vector<i64>{1, 5}));
  t.dp_shard.reset();
  EXPECT_EQ(ParallelDims::make(t)->group(Dimension::kExpertData, 5), (std::vector<i64>{1, 3, 5, 7}));
}

TEST(ParallelDims, DegreesThatBreakTheRankAlgebraAreRefused) {
  for (const i64 tp : {i64{0}, i64{-4}, i64{3}, std::numeric_limits<i64>::max()}) {
    Trial t;
    t.tp = tp;
    EXPECT_FALSE(ParallelDims::make(t)) << tp;
  }
  Trial t;
  t.gpus_per_node = t.dp = 4;
  t.ep = 2;
  EXPECT_TRUE(ParallelDims::make(t));
  t.ep = 3;
  EXPECT_FALSE(ParallelDims::make(t));
}

}  // namespace
}  // namespace sweep::shape
