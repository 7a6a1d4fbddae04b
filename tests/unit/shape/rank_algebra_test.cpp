#include "bench_kernels/shape/rank_algebra.h"

#include <gtest/gtest.h>

#include <limits>

#include "bench_kernels/shape/parallel_dims.h"
#include "tests/support/error_matchers.h"

namespace sweep::shape {
namespace {

using Solved = tl::expected<i64, Violation>;

Solved broken(Relation relation, Fault fault, i64 left, i64 right) {
  return tl::unexpected(Violation{relation, fault, left, right});
}

struct Case {
  const char* name;
  Relation relation;
  RankSizes sizes;
  Solved expected;
};

class RankAlgebra : public ::testing::TestWithParam<Case> {};

TEST_P(RankAlgebra, GivesTheSizeOrHowTheRelationIsBroken) {
  const Case& c = GetParam();
  const Solved solved = solve(c.relation, c.sizes);
  ASSERT_EQ(solved.has_value(), c.expected.has_value()) << (solved ? "" : sentence(solved.error(), c.sizes));
  if (solved) {
    EXPECT_EQ(*solved, *c.expected);
    return;
  }
  EXPECT_EQ(solved.error(), c.expected.error());
  EXPECT_FALSE(sentence(solved.error(), c.sizes).empty());
}

constexpr i64 kMost = std::numeric_limits<i64>::max();
INSTANTIATE_TEST_SUITE_P(
    All, RankAlgebra,
    ::testing::Values(
        Case{"dp", Relation::kDp, {.nodes = 2, .gpus_per_node = 8, .tp = 4, .pp = 2}, 2},
        Case{"dp_not_whole",
             Relation::kDp,
             {.nodes = 1, .gpus_per_node = 8, .tp = 3},
             broken(Relation::kDp, Fault::kNotWhole, 8, 3)},
        Case{"dp_too_large",
             Relation::kDp,
             {.nodes = 100'000, .gpus_per_node = 1024},
             broken(Relation::kDp, Fault::kTooLarge, 102'400'000, 1'000'000)},
        Case{"ranks_of_a_node", Relation::kGpusPerNode, {.nodes = 2, .dp = 4, .tp = 2}, 4},
        Case{"ranks_of_a_node_not_whole",
             Relation::kGpusPerNode,
             {.nodes = 3, .dp = 4},
             broken(Relation::kGpusPerNode, Fault::kNotWhole, 4, 3)},
        Case{"more_ranks_than_gpus",
             Relation::kGpusPerNode,
             {.dp = 16, .node_gpus = 8},
             broken(Relation::kGpusPerNode, Fault::kTooLarge, 16, 8)},
        Case{"more_ranks_than_the_axis_allows",
             Relation::kGpusPerNode,
             {.dp = 2048},
             broken(Relation::kGpusPerNode, Fault::kTooLarge, 2048, 1024)},
        Case{"world", Relation::kWorld, {.dp = 2, .tp = 3, .pp = 4, .cp = 5}, 120},
        Case{"world_too_large",
             Relation::kWorld,
             {.dp = kMost, .tp = kMost},
             broken(Relation::kWorld, Fault::kTooLarge, kMost, kMaxWorld)},
        Case{"grad_accum",
             Relation::kGradAccum,
             {.dp = 2, .micro_batch_size = 2, .global_batch_size = 64},
             16},
        Case{"grad_accum_not_whole",
             Relation::kGradAccum,
             {.dp = 3, .global_batch_size = 64},
             broken(Relation::kGradAccum, Fault::kNotWhole, 64, 3)},
        Case{"global_batch", Relation::kGlobalBatch, {.dp = 2, .micro_batch_size = 3, .grad_accum = 4}, 24},
        Case{"global_batch_too_large",
             Relation::kGlobalBatch,
             {.dp = 1'000'000, .micro_batch_size = 1'000'000},
             broken(Relation::kGlobalBatch, Fault::kTooLarge, 1'000'000'000'000, 1'000'000'000)},
        Case{"placed", Relation::kPlacement, {.nodes = 2, .gpus_per_node = 4, .dp = 8}, 8},
        Case{"placed_wrongly",
             Relation::kPlacement,
             {.nodes = 2, .gpus_per_node = 4, .dp = 4},
             broken(Relation::kPlacement, Fault::kUnequal, 8, 4)},
        Case{"placed_on_too_few_gpus",
             Relation::kPlacement,
             {.gpus_per_node = 16, .dp = 16, .node_gpus = 8},
             broken(Relation::kPlacement, Fault::kTooLarge, 16, 8)},
        Case{"experts", Relation::kExperts, {.dp = 2, .cp = 3, .ep = 6}, 1},
        Case{"experts_not_whole",
             Relation::kExperts,
             {.dp = 4, .ep = 3},
             broken(Relation::kExperts, Fault::kNotWhole, 4, 3)},
        Case{"shards", Relation::kShards, {.dp = 8, .dp_shard = 4}, 2},
        Case{"shards_not_whole",
             Relation::kShards,
             {.dp = 8, .dp_shard = 3},
             broken(Relation::kShards, Fault::kNotWhole, 8, 3)},
        Case{"shards_larger_than_dp",
             Relation::kShards,
             {.dp = 4, .dp_shard = 8},
             broken(Relation::kShards, Fault::kNotWhole, 4, 8)},
        Case{"batch", Relation::kBatch, {.dp = 2, .micro_batch_size = 3, .global_batch_size = 6}, 6},
        Case{"batch_unequal",
             Relation::kBatch,
             {.dp = 2, .global_batch_size = 3},
             broken(Relation::kBatch, Fault::kUnequal, 2, 3)},
        Case{"all_positive", Relation::kPositive, {}, 1}),
    [](const auto& info) { return info.param.name; });

TEST(RankAlgebraOfRanks, NamesTheSizeBelowOne) {
  const auto violation = must(broken_by_ranks({.cp = -4}));
  EXPECT_EQ(violation.fault, Fault::kBelowOne);
  EXPECT_EQ(violation.size, "cp");
  EXPECT_EQ(violation.left, -4);
}

// The solutions of solve() satisfy the relations that compare, over all small sizes; no size satisfies what
// it refuses.
TEST(RankAlgebraOfRanks, SolvedSizesSatisfyTheRelationsThatCompare) {
  i64 solved = 0, refused = 0;
  RankSizes s{.gpus_per_node = 4, .global_batch_size = 12};
  for (s.nodes = 1; s.nodes <= 3; ++s.nodes)
    for (s.tp = 1; s.tp <= 4; ++s.tp)
      for (s.pp = 1; s.pp <= 3; ++s.pp)
        for (s.micro_batch_size = 1; s.micro_batch_size <= 3; ++s.micro_batch_size) {
          RankSizes all = s;
          const auto dp = solve(Relation::kDp, s);
          bool possible = false;
          for (all.dp = 1; all.dp <= 12; ++all.dp) possible |= solve(Relation::kPlacement, all).has_value();
          ASSERT_EQ(dp.has_value(), possible);
          ++(dp ? solved : refused);
          if (!dp) continue;
          all.dp = *dp;
          ASSERT_EQ(solve(Relation::kPlacement, all), solve(Relation::kWorld, all));
          ASSERT_EQ(solve(Relation::kGpusPerNode, all), s.gpus_per_node);
          const auto accum = solve(Relation::kGradAccum, all);
          all.grad_accum = accum.value_or(1);
          ASSERT_EQ(accum.has_value(), solve(Relation::kBatch, all).has_value());
          if (accum) {
            ASSERT_EQ(solve(Relation::kGlobalBatch, all), 12);
          }
        }
  EXPECT_GT(solved, 20);
  EXPECT_GT(refused, 20);
}

TEST(RankAlgebraOfRanks, ASizeThatIsTooLargeIsNamedWhereItIsKnown) {
  const RankSizes many{.dp = 2048};
  EXPECT_EQ(sentence(solve(Relation::kGpusPerNode, many).error(), many),
            "gpus_per_node = dp x tp x pp x cp / nodes = 2048 x 1 x 1 x 1 / 1 = 2048 is more than 1024");
  const RankSizes endless{.dp = kMost, .tp = 4};
  EXPECT_EQ(sentence(solve(Relation::kWorld, endless).error(), endless),
            "world = dp x tp x pp x cp = 9223372036854775807 x 4 x 1 x 1 is more than 102400000 ranks");
}

TEST(RankAlgebraOfRanks, ParallelDimsRefuseWithTheSameSentence) {
  Trial t;
  t.nodes = 2, t.gpus_per_node = 8, t.dp = 3, t.tp = 4;
  const auto sizes = RankSizes::of(t);
  const auto violation = must(broken_by_ranks(sizes));
  EXPECT_EQ(violation.relation, Relation::kPlacement);
  EXPECT_EQ(ParallelDims::make(t).error().message, sentence(violation, sizes));
  EXPECT_EQ(sentence(violation, sizes),
            "nodes x gpus_per_node = 2 x 8 = 16, but dp x tp x pp x cp = 3 x 4 x 1 x 1 = 12");
}

}  // namespace
}  // namespace sweep::shape
