// Variance components and ranks, against values computed by hand.
#include "orchestrator/answers/statistics/confirm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace sweep::answers {
namespace {

using ::testing::HasSubstr;

Remeasured measured(const std::string& id, const std::vector<std::vector<double>>& by_allocation) {
  Remeasured out;
  out.trial_id = id, out.configuration = "TP" + id, out.before = 100;
  for (std::size_t j = 0; j < by_allocation.size(); ++j)
    out.visits.push_back({"a" + std::to_string(j), by_allocation[j]});
  return out;
}

TEST(Confirm, StudentsQuantilesAreThoseOfTheTables) {
  EXPECT_NEAR(student_t95(1), 12.706, 1e-3);
  EXPECT_NEAR(student_t95(2), 4.303, 1e-3);
  EXPECT_NEAR(student_t95(11), 2.2010, 5e-4);
  EXPECT_NEAR(student_t95(30), 2.0423, 1e-4);
  EXPECT_NEAR(student_t95(1000), 1.9623, 1e-4);
}

// One-way analysis of variance by hand, on logarithms 0, 2 | 4, 6: means 1 and 5, MS within 2, MS between 16.
TEST(Confirm, ComponentsOfVarianceByHand) {
  const auto e = [](double x) { return std::exp(x); };
  const auto spread = spread_of(measured("x", {{e(0), e(2)}, {e(4), e(6)}}));
  ASSERT_TRUE(spread);
  EXPECT_NEAR(spread->value, e(3), 1e-9);
  EXPECT_NEAR(*spread->within, std::sqrt(2.0), 1e-12);
  EXPECT_NEAR(*spread->between, std::sqrt((16.0 - 2.0) / 2.0), 1e-12);
  EXPECT_NEAR(std::log(spread->range->high), 3 + 12.7062 * std::sqrt(8.0 / 2.0), 1e-3);
}

TEST(Confirm, AllocationsThatDifferByLessThanRepeatsHaveNoVarianceOfTheirOwn) {
  const auto spread = spread_of(measured("x", {{90, 110}, {91, 109}, {110, 90}}));
  EXPECT_EQ(*spread->between, 0);
  EXPECT_GT(*spread->within, 0.1);
}

TEST(Confirm, OneAllocationHasNoIntervalAndNothingNoSpread) {
  const auto one = spread_of(measured("x", {{100, 101}}));
  EXPECT_FALSE(one->range);
  EXPECT_FALSE(one->between);
  EXPECT_FALSE(spread_of(measured("x", {})));
  EXPECT_FALSE(spread_of(measured("x", {{100}}))->within);
}

// Allocations shift both alike; pairs within an allocation do not see it.
TEST(Confirm, PairsWithinAllocationsLeaveTheirShiftOut) {
  const auto leader = measured("a", {{100}, {200}, {50}});
  const auto behind = measured("b", {{95.0}, {190.2}, {47.4}});
  const auto against = versus(behind, leader, true);
  EXPECT_EQ(against.status, RankingStatus::kBehind);
  EXPECT_NEAR(*against.share, -0.05, 0.002);
  EXPECT_EQ(versus(behind, leader, false).status, RankingStatus::kAhead) << "of a time, less is better";
  EXPECT_EQ(versus(measured("c", {{99}, {204}, {49.9}}), leader, true).status, RankingStatus::kTied);
  EXPECT_EQ(versus(measured("d", {{99}}), leader, true).status, RankingStatus::kUnknown);
}

TEST(Confirm, TheSentenceFollowsTheRanking) {
  const auto leader = measured("a", {{100}, {101}, {100}});
  EXPECT_THAT(confirmed({leader, measured("b", {{90}, {91}, {90}})}, "tokens_per_s").verdict,
              HasSubstr("the ranking holds: trial a"));
  const auto tied = confirmed({leader, measured("b", {{101}, {100}, {100}})}, "tokens_per_s");
  EXPECT_THAT(tied.verdict, HasSubstr("1 of the 1 others cannot be distinguished"));
  EXPECT_TRUE(tied.holds);
  const auto overtaken = confirmed({leader, measured("b", {{110}, {111}, {110}})}, "tokens_per_s");
  EXPECT_THAT(overtaken.verdict, HasSubstr("does not hold"));
  EXPECT_FALSE(overtaken.holds);
  EXPECT_TRUE(confirmed({leader, measured("b", {{110}, {111}, {110}})}, "step_ms").holds);
  EXPECT_THAT(confirmed({leader}, "mfu").verdict, HasSubstr("the only one"));
}

TEST(Confirm, WhatFailedIsSaidSafely) {
  auto failed = measured("a", {});
  failed.problem = "oom: \x1b[2J asked", failed.configuration = "TP\n1";
  const auto out = confirmed({failed, measured("b", {{100}, {100}, {101}})}, "tokens_per_s");
  EXPECT_FALSE(out.holds);
  EXPECT_THAT(out.verdict, HasSubstr("could not be measured again: oom:"));
  EXPECT_EQ(confirmed_text(out).find('\x1b'), std::string::npos);
  const auto document = confirmed_json(out, "");
  EXPECT_EQ(document["holds"], false);
  EXPECT_TRUE(document["trials"][0]["again"].is_null());
  EXPECT_EQ(document["trials"][0]["problem"], failed.problem);
  EXPECT_EQ(document["trials"][1]["standing"], "unknown");
  EXPECT_EQ(document["trials"][1]["allocations"], 3);
}

TEST(Confirm, NothingIsDecidedWhereTheMeasuringEndedEarly) {
  const auto out = confirmed({measured("a", {{100}, {100}}), measured("b", {{90}, {91}})}, "tokens_per_s");
  EXPECT_EQ(confirmed_json(out, "")["holds"], true);
  EXPECT_TRUE(confirmed_json(out, "")["ended_early"].is_null());
  const auto document = confirmed_json(out, "interrupted");
  EXPECT_TRUE(document["holds"].is_null());
  EXPECT_TRUE(document["verdict"].is_null());
  EXPECT_EQ(document["ended_early"], "interrupted");
  EXPECT_EQ(document["trials"].size(), 2);
}

}  // namespace
}  // namespace sweep::answers
