// The metric that results are ranked by where nobody names one.
#include "schema/ranking.h"

#include <gtest/gtest.h>

#include <numeric>

namespace sweep {
namespace {

ResultRow row_of(std::optional<double> tokens, std::optional<double> useful_fraction) {
  ResultRow out;
  Metrics& m = out.metrics;
  m.step_ms = 1, m.tokens_per_s_gpu = tokens, m.useful_fraction = useful_fraction;
  if (tokens && useful_fraction)
    m.useful_tokens_per_s = m.useful_tokens_per_s_gpu = *tokens * *useful_fraction;
  return out;
}

// The order of rows, and that of their columns.
std::string usual(std::span<const ResultRow> rows) {
  ResultColumns columns =
      ResultColumns::empty({{}, {kUsualMetricColumns.begin(), kUsualMetricColumns.end()}});
  std::vector<i64> entries(rows.size());
  std::iota(entries.begin(), entries.end(), i64{0});
  columns.append(rows, entries);
  EXPECT_EQ(usual_metric(columns), usual_metric(rows));
  return usual_metric(rows);
}

TEST(UsualMetric, IsThatOfUsefulTokensOnceAResultHasPadding) {
  std::vector<ResultRow> rows = {row_of(100, 1), row_of(90, 1)};
  EXPECT_EQ(usual(rows), "tokens_per_s_gpu");
  rows.push_back(row_of(200, 0.25));
  EXPECT_EQ(usual(rows), "useful_tokens_per_s_gpu");
  const std::span all(rows);
  const std::span<const ResultRow> sweeps[] = {all.first(2), all.last(1)};
  EXPECT_EQ(usual_metric(sweeps), "useful_tokens_per_s_gpu") << "one of those that are compared";
  rows.push_back(row_of(500, {}));
  EXPECT_EQ(usual(rows), "useful_tokens_per_s_gpu") << "the program of the last does not tell its padding";
}

TEST(UsualMetric, IsTheStepTimeWhereNoResultTellsItsTokens) {
  std::vector<ResultRow> rows = {row_of({}, {})};
  EXPECT_EQ(usual(rows), "step_ms");
  rows.push_back(row_of(100, {}));
  EXPECT_EQ(usual(rows), "tokens_per_s_gpu");
  EXPECT_EQ(usual({}), "tokens_per_s_gpu") << "nothing ran yet";
}

TEST(MayBeBest, IsTheSameOfARowAndOfColumns) {
  std::vector<ResultRow> rows(4, row_of(100, {}));
  for (ResultRow& row : rows) row.outcome = Outcome::kOk;
  rows[1].state = State::kPending, rows[2].outcome = Outcome::kOom, rows[3].metrics.steps_saved = 1;
  ResultColumns columns = ResultColumns::empty(kMayBeBestColumns);
  std::vector<i64> entries(rows.size());
  std::iota(entries.begin(), entries.end(), i64{0});
  columns.append(rows, entries);
  EXPECT_EQ(may_be_best(columns), (std::vector<bool>{true, false, false, false}));
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(may_be_best(rows[i]), may_be_best(columns)[i]);
}

TEST(UsefulRate, IsThatOfAllTokensWhereNobodyKnowsThePadding) {
  EXPECT_EQ(useful_rate(row_of(200, 0.25).metrics), 50);
  EXPECT_EQ(useful_rate(row_of(200, {}).metrics), 200);
  EXPECT_FALSE(useful_rate(row_of({}, {}).metrics));
}

}  // namespace
}  // namespace sweep
