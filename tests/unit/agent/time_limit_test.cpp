#include "worker/agent/node/time_limit.h"

#include <gtest/gtest.h>

namespace sweep::agent {
namespace {

Attempt asked(std::optional<double> predicted_s, double total_s = 3600) {
  Attempt out;
  out.predicted_s = predicted_s;
  out.deadlines.total_s = total_s;
  return out;
}

TEST(TimeLimit, WithoutAnEndEverythingMayStart) {
  const TimeLimit none(std::nullopt, 0);
  EXPECT_TRUE(none.allows(asked(1e6), 1e9));
  EXPECT_FALSE(none.over(1e9));
}

TEST(TimeLimit, WhatThePredictionPutsBeyondTheEndDoesNotStart) {
  const TimeLimit minute(60, 1000);
  EXPECT_TRUE(minute.allows(asked(10), 1040));
  EXPECT_FALSE(minute.allows(asked(10), 1050));
  EXPECT_FALSE(minute.over(1059));
  EXPECT_TRUE(minute.over(1060));
}

TEST(TimeLimit, WhatTookLongerThanPredictedCountsForTheNext) {
  TimeLimit minute(60, 0);
  minute.ended(asked(0.3), 2.3);
  EXPECT_NEAR(minute.estimate(asked(0.3)), 2.3, 0.01);
  EXPECT_FALSE(minute.allows(asked(0.3), 57));
  EXPECT_TRUE(minute.allows(asked(0.3), 56));
  minute.ended(asked(0.3), 0.4);  // a quick one does not make the next one quick
  EXPECT_GE(minute.estimate(asked(0.3)), 2.3);
}

TEST(TimeLimit, WithoutAPredictionTheLongestAttemptSoFarCounts) {
  TimeLimit minute(60, 0);
  EXPECT_TRUE(minute.allows(asked(std::nullopt), 55));
  minute.ended(asked(std::nullopt), 12);
  EXPECT_FALSE(minute.allows(asked(std::nullopt), 55));
}

TEST(TimeLimit, NothingTakesLongerThanItsDeadline) {
  TimeLimit minute(60, 0);
  minute.ended(asked(1), 30);
  EXPECT_EQ(minute.estimate(asked(1, 8)), 8);
}

TEST(TimeLimit, WhatNoAllocationIsLongEnoughForIsTriedAtItsBeginning) {
  const TimeLimit minute(60, 0);
  EXPECT_TRUE(minute.allows(asked(500), 1));
  EXPECT_FALSE(minute.allows(asked(500), 13));
}

}  // namespace
}  // namespace sweep::agent
