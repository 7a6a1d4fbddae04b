#include "orchestrator/answers/statistics/transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "orchestrator/answers/statistics/statistics.h"
#include "tests/support/must.h"
#include "tests/unit/answers/rows.h"

namespace sweep::answers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Spearman, WorkedOutByHand) {
  // 1 - 6 (1 + 1 + 0 + 1 + 1) / (5 x 24) = 0.8
  EXPECT_DOUBLE_EQ(*spearman({1, 2, 3, 4, 5}, {20, 10, 30, 60, 50}), 0.8);
  EXPECT_DOUBLE_EQ(*spearman({1, 2, 3}, {1, 10, 100}), 1);
  EXPECT_DOUBLE_EQ(*spearman({1, 2, 3}, {3, 2, 1}), -1);
}

TEST(Spearman, TiesShareTheirRank) {
  EXPECT_THAT(average_ranks({5, 1, 5, 7}), ElementsAre(2.5, 1, 2.5, 4));
  // scipy.stats.spearmanr(a, b).statistic of scipy 1.17.1
  EXPECT_NEAR(*spearman({1, 2, 2, 4, 5, 5, 7}, {3, 3, 1, 8, 2, 9, 9}), 0.5555555555555556, 1e-12);
  EXPECT_NEAR(*spearman({1, 0, 2, 0}, {4, 3, 5, 3}), 1, 1e-12);
  EXPECT_NEAR(*spearman({3, 1, 7, 0, 6, 6, 9, 0, 7, 4}, {6, 10, 8, 5, 6, 6, 9, 8, 7, 10}), 0.1682316462276133,
              1e-12);
  EXPECT_NEAR(
      *spearman({21, 6, 13, 23, 0, 16, 7, 24, 14, 15, 17, 7, 11, 7, 21, 7, 24, 14, 9, 0, 13, 17, 20, 3, 5},
                {41, 29, 22, 26, 23, 26, 30, 46, 30, 28, 33, 28, 17,
                 16, 30, 25, 39, 30, 21, 18, 14, 32, 27, 26, 17}),
      0.6220975232198142, 1e-12);
}

TEST(Spearman, IsAbsentWhereThereIsNoOrder) {
  EXPECT_FALSE(spearman({1, 2}, {1, 2}));
  EXPECT_FALSE(spearman({1, 1, 1}, {1, 2, 3}));
  EXPECT_FALSE(spearman({1, 2, 3}, {1, 2}));
}

// Six configurations of two axes: tp 1, 2, 4 and recompute none, full. B trains with a program of its own.
struct Tables {
  std::vector<ResultRow> a, b;
  void add(i64 tp, Recompute recompute, double in_a, double in_b, double spread = 0.001) {
    const std::string id = std::to_string(a.size());
    a.push_back(ok_row("a" + id, tp, in_a, spread)), b.push_back(ok_row("b" + id, tp, in_b, spread));
    a.back().trial.recompute = b.back().trial.recompute = recompute;
    b.back().trial.workload = Workload::kCommand;
  }
};

Tables six() {
  Tables t;
  t.add(1, Recompute::kNone, 100, 50);
  t.add(2, Recompute::kNone, 90, 48);
  t.add(4, Recompute::kNone, 80, 40);
  t.add(1, Recompute::kFull, 70, 49);
  t.add(2, Recompute::kFull, 60, 47);
  t.add(4, Recompute::kFull, 50, 39);
  return t;
}

TEST(Transfer, RanksRegretAndRatio) {
  auto t = six();
  const auto found = must(transfer(t.a, t.b, {}));
  ASSERT_EQ(found.cells.size(), 1u);
  const auto& cell = found.cells[0];
  EXPECT_EQ(cell.measured, 6);
  // Ranks in A 1..6, in B 1 3 5 2 4 6: 1 - 6 (0 + 1 + 4 + 4 + 1 + 0) / (6 x 35).
  EXPECT_NEAR(*cell.spearman, 1 - 60.0 / 210, 1e-12);
  EXPECT_DOUBLE_EQ(*cell.regret, 0);
  EXPECT_NEAR(*cell.regret_of_median, 1 - 47.5 / 50, 1e-12);
  EXPECT_THAT(found.shared[3].rank_a, ::testing::Optional(4.0));
  EXPECT_THAT(found.shared[3].rank_b, ::testing::Optional(2.0));
}

TEST(Transfer, ChoosingByACostsWhatItLosesInB) {
  auto t = six();
  t.b[0].metrics.tokens_per_s_gpu = 47, t.b[0].metrics.step_ms = 1e6 / 47;
  t.b[0].metrics.step_ms_ci_low = 1e6 / 47.1, t.b[0].metrics.step_ms_ci_high = 1e6 / 46.9;
  const auto faster = transfer(t.a, t.b, {});
  EXPECT_NEAR(*faster->cells[0].regret, 1 - 47.0 / 49, 1e-12);  // best in B: tp 1 with recompute
  EXPECT_FALSE(faster->cells[0].within_noise);
  const auto shorter =
      transfer(t.a, t.b, {.metric = "step_ms"});  // the same asked of a metric where less is better
  EXPECT_NEAR(*shorter->cells[0].regret, 49.0 / 47 - 1, 1e-12);
  EXPECT_NEAR(*shorter->cells[0].spearman, *faster->cells[0].spearman, 1e-12);
  t.b[0].metrics.step_ms_ci_low = 1e6 / 60.0, t.b[0].metrics.step_ms_ci_high = 1e6 / 40.0;
  EXPECT_TRUE(transfer(t.a, t.b, {})->cells[0].within_noise);
}

TEST(Transfer, AChoiceThatDoesNotRunInBHasNoRegret) {
  auto t = six();
  t.b[0] = bad_row("b0", 1, Outcome::kOom, "too large");
  t.b[0].trial.workload = Workload::kCommand;
  const auto found = transfer(t.a, t.b, {});
  EXPECT_FALSE(found->cells[0].regret);
  EXPECT_THAT(transfer_text(*found, {}, 0), HasSubstr("oom in B"));
  EXPECT_TRUE(transfer_json(*found, {})["cells"][0]["regret"].is_null());
}

TEST(Transfer, WhatFits) {
  auto t = six();
  const auto fail_in = [](ResultRow& row, Outcome outcome, const std::string& rule) {
    row.outcome = outcome, row.rule = rule, row.metrics = {};
  };
  fail_in(t.b[0], Outcome::kOom, "");
  fail_in(t.a[1], Outcome::kPruned, "memory");
  fail_in(t.a[2], Outcome::kOom, ""), fail_in(t.b[2], Outcome::kOom, "");
  fail_in(t.a[3], Outcome::kPruned, "where");
  fail_in(t.b[4], Outcome::kHang, "");
  const auto found = transfer(t.a, t.b, {});
  EXPECT_THAT(found->fits, ElementsAre(1, 1, 1, 1, 2));  // both, only A, only B, neither, unknown
}

TEST(Transfer, AxesThatExplainTheDifference) {
  auto t = six();
  const auto found = transfer(t.a, t.b, {});
  ASSERT_EQ(found->axes.size(), 2u);
  EXPECT_EQ(found->axes[0].axis.name(), "recompute");  // B hardly slows down by it
  EXPECT_GT(found->axes[0].explains, 0.7);
  EXPECT_EQ(found->axes[0].pairs, 3);
  EXPECT_EQ(found->axes[0].opposite, 0);
  EXPECT_EQ(found->axes[1].pairs, 6);
  double product = 1;
  for (const auto& [value, factor] : found->axes[0].factor) product *= factor;
  EXPECT_NEAR(product, 1, 1e-12);  // against the mean of the cell
  // B alone prefers recomputation at tp 1, by more than the noise.
  t.b[3] = ok_row("b3", 1, 60, 0.001), t.b[3].trial.recompute = Recompute::kFull,
  t.b[3].trial.workload = Workload::kCommand;
  EXPECT_EQ(transfer(t.a, t.b, {})->axes[0].opposite, 1);
  EXPECT_EQ(transfer(t.a, t.b, {})->axes[0].certain, 1);
}

TEST(Transfer, AnAxisThatFollowsFromOthersIsNotCountedTwice) {
  Tables t;
  for (const i64 micro : {1, 2, 4}) {
    t.add(1, Recompute::kNone, 10.0 * double(micro), 5.0 * double(micro));
    for (auto* row : {&t.a.back(), &t.b.back()})
      row->trial.micro_batch_size = micro, row->trial.grad_accum = 4 / micro;
  }
  const auto found = transfer(t.a, t.b, {});
  ASSERT_EQ(found->axes.size(), 1u);
  EXPECT_EQ(found->axes[0].axis.name(), "micro_batch_size");
  EXPECT_EQ(found->axes[0].pairs, 3);
}

TEST(Transfer, AnAxisThatACommandNeverGotIsUnknownToIt) {
  auto t = six();
  for (std::size_t i = 0; i < 6;
       ++i) {  // A also tried another optimizer, which was faster for one configuration
    auto row = t.a[i];
    row.trial_id += "p", row.trial.optimizer = OptimizerKind::kPlain;
    row.metrics.tokens_per_s_gpu = i == 5 ? 200 : 1;
    t.a.push_back(row);
  }
  const auto found = transfer(t.a, t.b, {});
  EXPECT_EQ(found->shared.size(), 6u);
  ASSERT_EQ(found->only_a.size(), 1u);
  EXPECT_EQ(found->only_a[0].name(), "optimizer");
  EXPECT_EQ(found->shared[5].a->trial_id, "a5p");
  EXPECT_EQ(found->shared[0].a->trial_id, "a0");
}

TEST(Transfer, NoConfigurationInCommonNamesTheAxes) {
  auto t = six();
  for (auto& row : t.b) row.trial.hardware = "h100-sxm-80gb";
  const auto none = transfer(t.a, t.b, {});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("hardware (A: cpu; B: h100-sxm-80gb)"));
  EXPECT_EQ(transfer(t.a, t.b, {.match = {"tp", "recompute"}})->shared.size(), 6u);
  EXPECT_FALSE(transfer(t.a, t.b, {.match = {"no_such_axis"}}));
}

TEST(Transfer, ModelsAreEqualByTheirDimensions) {
  auto t = six();
  for (auto& row : t.b) row.trial.model = "what I call it";
  EXPECT_EQ(transfer(t.a, t.b, {})->shared.size(), 6u);
  for (auto& row : t.b) row.trial.spec.layers += 1;
  EXPECT_FALSE(transfer(t.a, t.b, {}));
  for (auto& row : t.b) row.trial.spec = {};  // an import that does not know them: then by name
  EXPECT_FALSE(transfer(t.a, t.b, {}));
  for (auto& row : t.b) row.trial.model = t.a[0].trial.model;
  EXPECT_EQ(transfer(t.a, t.b, {})->shared.size(), 6u);
}

TEST(Transfer, ThePictureHasAPointForEachConfiguration) {
  auto t = six();
  const auto found = transfer(t.a, t.b, {});
  const auto svg = transfer_svg(*found, {}, {"step", "own <b>"});
  EXPECT_THAT(svg, HasSubstr("rank 4 in A, 2 in B"));
  EXPECT_THAT(svg, HasSubstr("class=\"star\""));
  EXPECT_THAT(svg, ::testing::Not(HasSubstr("<b>")));
}

}  // namespace
}  // namespace sweep::answers
