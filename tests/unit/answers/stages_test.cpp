#include "orchestrator/answers/statistics/stages.h"

#include <gtest/gtest.h>

#include "orchestrator/answers/tables/source_tables.h"
#include "tests/unit/answers/rows.h"

namespace sweep::answers {
namespace {

ResultRow stage(int number, const std::string& name, double tokens, i64 seq_len = 1024) {
  ResultRow row = ok_row(name + std::to_string(seq_len), 1, tokens);
  row.trial.labels = "{\"@stage\":" + std::to_string(number) + ",\"stage\":\"" + name + "\"}";
  row.trial.seq_len = seq_len;
  row.trial.micro_batch_size = number + 1;
  return row;
}

const Field& rate() {
  static const Field field = *resolve_ranked("tokens_per_s_gpu");
  return field;
}

TEST(Stages, EachIsComparedWithTheOneBeforeAndTheFirst) {
  std::vector<ResultRow> rows = {stage(2, "c", 300), stage(0, "a", 100), stage(1, "b", 200)};
  const auto series = stage_series(rows, rate());
  ASSERT_EQ(series.size(), 1u);
  const auto& stages = series[0].stages;
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[0].name, "a");
  EXPECT_FALSE(stages[0].over_before || stages[0].over_first);
  EXPECT_DOUBLE_EQ(*stages[1].over_before, 2);
  EXPECT_DOUBLE_EQ(*stages[2].over_before, 1.5);
  EXPECT_DOUBLE_EQ(*stages[2].over_first, 3);
  EXPECT_EQ(stages[0].change, "");
  EXPECT_EQ(stages[1].change, "MBS2");
}

TEST(Stages, WhatDidNotRunIsPassedOver) {
  std::vector<ResultRow> rows = {stage(0, "a", 100), stage(1, "b", 1), stage(2, "c", 300)};
  rows[1].outcome = Outcome::kOom, rows[1].metrics = {};
  const auto series = stage_series(rows, rate());
  ASSERT_EQ(series.size(), 1u);
  EXPECT_FALSE(series[0].stages[1].value);
  EXPECT_DOUBLE_EQ(*series[0].stages[2].over_before, 3);
}

TEST(Stages, LessIsBetterOfATime) {
  std::vector<ResultRow> rows = {stage(0, "a", 100), stage(1, "b", 200)};  // step time: 1e6 / tokens
  const auto series = stage_series(rows, *resolve_ranked("step_ms"));
  EXPECT_DOUBLE_EQ(*series.at(0).stages.at(1).over_before, 2);
}

TEST(Stages, OtherAxesMakeASeriesEach) {
  std::vector<ResultRow> rows = {stage(0, "a", 100), stage(1, "b", 200), stage(0, "a", 10, 2048),
                                 stage(1, "b", 40, 2048)};
  const auto series = stage_series(rows, rate());
  ASSERT_EQ(series.size(), 2u);
  EXPECT_DOUBLE_EQ(*series[0].stages.at(1).over_before, 2);
  EXPECT_DOUBLE_EQ(*series[1].stages.at(1).over_before, 4);
  EXPECT_NE(series[0].name, series[1].name);
}

TEST(Stages, RowsWithoutAStageMakeNone) {
  const std::vector<ResultRow> rows = {ok_row("a", 1, 100), ok_row("b", 2, 100)};
  EXPECT_TRUE(stage_series(rows, rate()).empty());
  const auto table = source_table(SourceTable::kStages, rows);
  EXPECT_TRUE(table.table.rows.empty());
  EXPECT_EQ(table.notes.size(), 1u);
}

}  // namespace
}  // namespace sweep::answers
