#include <gtest/gtest.h>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/stage_split.h"

namespace sweep::shape {
namespace {

std::vector<i64> layers_of(const char* model, i64 stages) {
  std::vector<CostShare> shares;
  split_by_cost(*find_model(model), stages, shares);
  std::vector<i64> out;
  for (const auto& s : shares) out.push_back(s.layers);
  return out;
}

TEST(CostSplit, AStageIsFullOnceItReachesItsShareOfTheCost) {
  EXPECT_EQ(layers_of("playbook-1b", 2), (std::vector<i64>{10, 6}));
  EXPECT_EQ(layers_of("playbook-1b", 4), (std::vector<i64>{5, 5, 5, 1}));
  EXPECT_EQ(layers_of("playbook-8b", 4), (std::vector<i64>{9, 9, 8, 6}));
  EXPECT_EQ(layers_of("playbook-8b", 8), (std::vector<i64>{5, 4, 4, 5, 4, 4, 4, 2}));
}

TEST(CostSplit, TheLossCanStandOnAnotherStageThanTheHead) {
  std::vector<CostShare> shares;
  split_by_cost(*find_model("playbook-8b"), 16, shares);
  EXPECT_TRUE(shares[14].head);
  EXPECT_FALSE(shares[14].loss);
  EXPECT_TRUE(shares[15].loss);
  EXPECT_TRUE(shares[0].embedding);
  for (const auto& s : shares) EXPECT_FALSE(s.empty());
}

TEST(CostSplit, TooManyStagesLeaveOneEmpty) {
  std::vector<CostShare> shares;
  split_by_cost(*find_model("playbook-1b"), 16, shares);
  EXPECT_TRUE(shares[15].empty());
}

}  // namespace
}  // namespace sweep::shape
