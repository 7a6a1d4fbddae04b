#include "orchestrator/answers/statistics/importance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/answers/statistics/limits.h"
#include "orchestrator/answers/statistics/pareto.h"
#include "tests/support/must.h"
#include "tests/unit/answers/rows.h"

namespace sweep::answers {
namespace {

ResultRow with_batch(ResultRow row, i64 batch) {
  row.trial.micro_batch_size = batch;
  return row;
}

// tp matters ten times as much as the batch, and the batch has more values.
std::vector<ResultRow> two_axes() {
  std::vector<ResultRow> out;
  for (const i64 tp : {1, 2, 4})
    for (const i64 batch : {1, 2, 4, 8})
      out.push_back(
          with_batch(ok_row(std::to_string(out.size()), tp, 1000.0 / double(tp) + double(batch)), batch));
  return out;
}

std::vector<AxisImportance> of(std::span<const ResultRow> rows, std::span<const std::string> apart = {}) {
  return importance(rows, *resolve_ranked("tokens_per_s_gpu"), varying(rows), apart);
}

TEST(Importance, IsTheShareOfTheVarianceOfAnAxis) {
  const auto rows = two_axes();
  const auto all = of(rows);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].axis.name(), "tp");
  EXPECT_EQ(all[0].values, 3u);
  EXPECT_GT(all[0].share, 0.99);
  EXPECT_LT(all[1].share, 0.01);
  const auto map = must(heatmap(rows, {}));
  EXPECT_EQ(map.rows.name(), "micro_batch_size") << "of the two chosen, the one with more values goes down";
}

// Eta squared of two values by chance is not 0; an axis whose values are all different explains everything.
TEST(Importance, AnAxisOfManyValuesIsNotImportantByChance) {
  std::vector<ResultRow> rows = two_axes();
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].trial.threads = i64(i) + 1;
  const auto all = of(rows);
  EXPECT_EQ(all.front().axis.name(), "tp");
  EXPECT_EQ(all.back().share, 0);
}

TEST(Importance, ComparesWithinGroupsAndSkipsWhatDidNotEndOk) {
  std::vector<ResultRow> rows = two_axes();
  for (auto row : two_axes()) {
    row.trial_id += "x", row.trial.model = "tiny", *row.metrics.tokens_per_s_gpu *= 100;
    rows.push_back(row);
  }
  rows.push_back(bad_row("bad", 16, Outcome::kOom, "full"));
  EXPECT_EQ(of(rows).front().axis.name(), "model");
  const std::string apart[] = {"model"};
  const auto within = of(rows, apart);
  EXPECT_EQ(within.front().axis.name(), "tp");
  EXPECT_EQ(within.front().values, 3u);
  EXPECT_GT(within.front().share, 0.99);
}

TEST(Importance, OfEqualOrTooFewResultsIsNotStated) {
  const std::vector<ResultRow> equal = {ok_row("a", 1, 5), ok_row("b", 2, 5), ok_row("c", 4, 5)};
  EXPECT_TRUE(of(equal).empty());
  const std::vector<ResultRow> two = {ok_row("a", 1, 5), ok_row("b", 2, 7)};
  EXPECT_TRUE(of(two).empty());
}

// Four axes, and the two with most values are not the two that matter.
TEST(Heatmap, WithoutNamedAxesDrawsTheTwoThatMatterMost) {
  std::vector<ResultRow> rows;
  for (const i64 tp : {1, 2})
    for (const i64 zero : {0, 1})
      for (const i64 batch : {1, 2, 4, 8}) {
        rows.push_back(with_batch(
            ok_row(std::to_string(rows.size()), tp, 100.0 * double(tp) * double(1 + zero)), batch));
        rows.back().trial.zero = zero;
      }
  const auto map = must(heatmap(rows, {}));
  EXPECT_THAT((std::vector{map.rows.name(), map.cols.name()}), ::testing::UnorderedElementsAre("tp", "zero"));
}

TEST(Pareto, KeepsWhatNothingBeatsInBoth) {
  const std::vector<ResultRow> rows = {ok_row("cheap", 4, 1), ok_row("fast", 1, 9), ok_row("beaten", 4, 9),
                                       ok_row("between", 2, 5), ok_row("same as between", 2, 5)};
  std::vector<const ResultRow*> all;
  for (const ResultRow& row : rows) all.push_back(&row);
  const auto x = [](const ResultRow& row) { return double(row.trial.tp); };
  const auto y = [](const ResultRow& row) { return *row.metrics.tokens_per_s_gpu; };
  std::vector<std::string> ids;
  for (const ResultRow* row : pareto_front(all, x, y)) ids.push_back(row->trial_id);
  EXPECT_EQ(ids, (std::vector<std::string>{"fast", "between", "cheap"}));
  EXPECT_TRUE(pareto_front(all, x, [](const ResultRow&) { return std::nan(""); }).empty());
}

ResultRow sized(ResultRow row, i64 batch, i64 peak_gib) {
  row.trial.micro_batch_size = batch;
  row.trial.memory_cap_bytes = i64{80} << 30;
  row.metrics.peak_allocated_bytes = peak_gib << 30;
  return row;
}

TEST(Limits, NameTheLargestThatFitsAndTheSmallestThatDoesNot) {
  std::vector<ResultRow> rows = {sized(ok_row("a1", 1, 1), 1, 20), sized(ok_row("a2", 1, 1), 2, 40),
                                 sized(bad_row("a8", 1, Outcome::kOom, ""), 8, 77),
                                 sized(bad_row("a4", 1, Outcome::kPruned, ""), 4, 0),
                                 sized(ok_row("b1", 2, 1), 1, 10)};
  rows[3].rule = "memory", rows[3].metrics.peak_allocated_bytes.reset();
  const auto limits = memory_limits(rows);
  ASSERT_EQ(limits.size(), 2u);
  EXPECT_EQ(limits[0].fits->trial_id, "a2");
  EXPECT_EQ(limits[0].fails->trial_id, "a4") << "pruned for memory counts, and is smaller";
  EXPECT_DOUBLE_EQ(*limits[0].headroom, 0.5);
  EXPECT_EQ(limits[1].fits->trial_id, "b1");
  EXPECT_EQ(limits[1].fails, nullptr);
  rows[3].rule = "layout";
  EXPECT_EQ(memory_limits(rows)[0].fails->trial_id, "a8");
  rows.resize(2);
  EXPECT_TRUE(memory_limits(rows).empty()) << "nothing ran out: no limit was seen";
}

}  // namespace
}  // namespace sweep::answers
