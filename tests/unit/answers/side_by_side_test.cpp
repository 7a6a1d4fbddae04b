// Results side by side: which way a metric is better, and what is not compared.
#include "orchestrator/answers/statistics/side_by_side.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/must.h"
#include "tests/unit/answers/rows.h"

namespace sweep::answers {
namespace {

const SideMetric* found(const SideBySide& sides, std::string_view key) {
  const auto at =
      std::ranges::find_if(sides.metrics, [&](const SideMetric& one) { return one.metric.name() == key; });
  return at == sides.metrics.end() ? nullptr : &*at;
}

TEST(SideBySide, ARatioIsToTheFirstAndItsVerdictByTheMetricsDirection) {
  ResultRow a = ok_row("a", 1, 100), b = ok_row("b", 2, 150), c = ok_row("c", 2, 50);
  a.metrics.step_ms = 10, b.metrics.step_ms = 5, c.metrics.step_ms.reset();
  const auto sides = side_by_side({&a, &b, &c});
  ASSERT_EQ(sides.differ.size(), 1u);
  EXPECT_EQ(sides.differ[0].name(), "tp");
  const SideMetric* step = found(sides, "step_ms");
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->ratio(1), 0.5);
  EXPECT_EQ(verdict(step->better, step->ratio(1)), "better") << "less time is better";
  EXPECT_FALSE(step->ratio(2)) << "not measured is no ratio";
  const SideMetric* rate = found(sides, "tokens_per_s_gpu");
  ASSERT_NE(rate, nullptr);
  EXPECT_EQ(rate->ratio(2), 0.5);
  EXPECT_EQ(verdict(rate->better, rate->ratio(2)), "worse");
  EXPECT_EQ(verdict(Better::kHigher, 1.0), "same");
  EXPECT_EQ(verdict(Better::kNone, 2.0), "");
  EXPECT_EQ(found(sides, "formula_version"), nullptr) << "it is no measurement";
}

TEST(SideBySide, OfTwoSweepsOnlyWhatEndedOkInBothCounts) {
  const std::vector<ResultRow> a = {ok_row("1", 1, 100), ok_row("2", 1, 100), ok_row("3", 1, 100)};
  std::vector<ResultRow> b = {ok_row("1", 1, 120), ok_row("2", 1, 90), ok_row("3", 1, 300)};
  b[2].outcome = Outcome::kOom;
  const auto compared = must(compare(a, b, {}));
  const auto metrics = paired_metrics(compared);
  const auto rate =
      std::ranges::find_if(metrics, [](const auto& one) { return one.metric.name() == "tokens_per_s_gpu"; });
  ASSERT_NE(rate, metrics.end());
  EXPECT_EQ(rate->pairs, 2);
  EXPECT_EQ(rate->improved, 1);
  EXPECT_EQ(rate->worsened, 1);
  EXPECT_NEAR(rate->ratio, 1.05, 1e-12);
}

}  // namespace
}  // namespace sweep::answers
