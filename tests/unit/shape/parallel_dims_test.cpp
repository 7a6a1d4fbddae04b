#include "bench_kernels/shape/parallel_dims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sweep::shape {
namespace {

using testing::HasSubstr;

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

TEST(ParallelDims, ErrorSpellsBothSides) {
  Trial t;
  t.nodes = 2;
  t.gpus_per_node = 8;
  t.dp = 3;
  t.tp = 4;
  const std::string message = ParallelDims::make(t).error().message;
  EXPECT_THAT(message, HasSubstr("dp 3 x tp 4 x pp 1 x cp 1 = 12"));
  EXPECT_THAT(message, HasSubstr("nodes 2 x gpus_per_node 8 = 16"));
}

TEST(ParallelDims, ExpertsDivideDataTimesContext) {
  Trial t;
  t.gpus_per_node = t.dp = 4;
  t.ep = 2;
  EXPECT_TRUE(ParallelDims::make(t).has_value());
  t.ep = 3;
  EXPECT_THAT(ParallelDims::make(t).error().message, HasSubstr("ep 3 does not divide dp 4 x cp 1 = 4"));
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

TEST(ParallelDims, ZeroNegativeAndHugeDegreesAreRefused) {
  Trial t;
  t.tp = 0;
  EXPECT_THAT(ParallelDims::make(t).error().message, HasSubstr("tp = 0"));
  t.tp = -4;
  EXPECT_FALSE(ParallelDims::make(t).has_value());
  t.tp = t.dp = std::numeric_limits<i64>::max();
  EXPECT_THAT(ParallelDims::make(t).error().message, HasSubstr("beyond 64 bits"));
}

}  // namespace
}  // namespace sweep::shape
