// Which way a metric is better: every metric of schema/fields.def, in every answer that ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/expected.h"
#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/answers/statistics/best.h"
#include "orchestrator/answers/statistics/compare.h"
#include "orchestrator/answers/statistics/transfer.h"
#include "schema/ranking.h"
#include "tests/support/error_matchers.h"
#include "tests/unit/answers/rows.h"

namespace sweep::answers {
namespace {

void set(Metrics& metrics, std::string_view key, i64 value) {
  for_each_metric(metrics, [&](const FieldInfo& info, auto& member) {
    using T = typename std::decay_t<decltype(member)>::value_type;
    if constexpr (!std::is_same_v<T, std::string>)
      if (info.key == key) member = static_cast<T>(value);
  });
}

// Two trials that differ in this metric alone.
std::vector<ResultRow> less_and_more(const Column& metric) {
  std::vector<ResultRow> rows = {ok_row("less", 1, 100), ok_row("more", 2, 100)};
  for (ResultRow& row : rows) {
    row.metrics = {};
    set(row.metrics, metric.key, row.trial_id == "less" ? 1 : 2);
  }
  return rows;
}

std::vector<const Column*> number_metrics() {
  std::vector<const Column*> out;
  for (const Column& c : columns())
    if (c.role == Role::kMetric && c.type != "text") out.push_back(&c);
  return out;
}

TEST(Direction, EveryAnswerTakesItFromTheTable) {
  for (const Column* metric : number_metrics()) {
    if (metric->better == Better::kNone) continue;
    const std::string key(metric->key);
    const auto rows = less_and_more(*metric);
    const std::string wins = metric->better == Better::kLower ? "less" : "more";
    const auto groups = best(rows, {.metric = key});
    ASSERT_TRUE(groups) << key;
    ASSERT_TRUE(groups->front().winner) << key;
    EXPECT_EQ(groups->front().winner->trial_id, wins) << key;

    const auto map = heatmap(rows, {.rows = "tp", .cols = "model", .value = key});
    ASSERT_TRUE(map && map->best) << key;
    EXPECT_EQ(map->cells[*map->best].best->trial_id, wins) << key;
    EXPECT_EQ(map->colours.share(wins == "less" ? 1 : 2), 1) << key << ": the better one is the brighter";

    std::vector<ResultRow> a = {rows[0]}, b = {rows[1]};
    b[0].trial_id = a[0].trial_id, b[0].trial.tp = a[0].trial.tp;
    const auto change = compare(a, b, {.metric = key});
    ASSERT_TRUE(change) << key;
    EXPECT_EQ(change->pairs.front().worse, wins == "less") << key;
    const auto moved = transfer(rows, rows, {.metric = key});
    ASSERT_TRUE(moved) << key;
    EXPECT_EQ(moved->shared[*moved->cells.front().best].b->trial_id, wins) << key;
  }
}

TEST(Direction, AMetricThatHasNoneIsNotRanked) {
  int none = 0;
  for (const Column* metric : number_metrics()) {
    if (metric->better != Better::kNone) continue;
    ++none;
    const std::string key(metric->key);
    const auto rows = less_and_more(*metric);
    const auto refused = IsError(ErrorKind::kInvalidValue, key);
    EXPECT_THAT(error_in(best(rows, {.metric = key})), refused);
    EXPECT_THAT(error_in(heatmap(rows, {.value = key})), refused);
    EXPECT_THAT(error_in(compare(rows, rows, {.metric = key})), refused);
    EXPECT_THAT(error_in(transfer(rows, rows, {.metric = key})), refused);
    EXPECT_TRUE(heatmap(rows, {.value = key, .objective = "step_ms"})) << key << " may be shown";
  }
  EXPECT_GT(none, 0);
}

// Less is better for an effort, a time, an amount of memory or traffic, and a price.
TEST(Direction, CostsAreBetterLowAndRatesHigh) {
  for (const Column* metric : number_metrics()) {
    const std::string key(metric->key);
    for (const char* unit : {"ms", "bytes", "USD", "nats", "W"}) {
      if (metric->unit == unit) {
        EXPECT_EQ(metric->better, Better::kLower) << key;
      }
    }
    for (const char* unit : {"tokens/s", "TFLOP/s", "MT/h"}) {
      if (metric->unit == unit) {
        EXPECT_EQ(metric->better, Better::kHigher) << key;
      }
    }
    for (const char* start : {"sent_bytes", "calls_", "step_launches", "step_host_syncs", "skipped_steps",
                              "expert_load", "alloc_retries", "ooms"}) {
      if (key.starts_with(start)) {
        EXPECT_EQ(metric->better, Better::kLower) << key;
      }
    }
  }
}

TEST(Direction, OneRuleSaysWhoMayBeBest) {
  ResultRow row = ok_row("a", 1, 100);
  EXPECT_TRUE(may_be_best(row));
  row.metrics.steps_saved = 3;
  EXPECT_FALSE(may_be_best(row)) << "it was stopped early";
  EXPECT_FALSE(may_be_best(bad_row("b", 1, Outcome::kInvalid, "")));
  EXPECT_TRUE(ranks_before(Better::kLower, 1, "z", 2, "a"));
  EXPECT_TRUE(ranks_before(Better::kHigher, 1, "a", 1, "b")) << "of equals, the smaller id";
}

}  // namespace
}  // namespace sweep::answers
