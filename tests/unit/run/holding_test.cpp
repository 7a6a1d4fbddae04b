// How far ahead an allocation's inbox is kept: by the pace at which its trials end.
#include "orchestrator/run/holding.h"

#include <gtest/gtest.h>

namespace sweep::run {
namespace {

using namespace std::chrono_literals;
constexpr i64 kLeast = 2;

Holding holding(i64 nodes, i64 landed) {
  Holding out;
  out.request.nodes = nodes;
  out.landed = landed;
  out.since = Clock::Point{};
  return out;
}

TEST(Holding, KeepsAFewAheadOfLongTrials) {
  EXPECT_EQ(holding(64, 0).ahead(Clock::Point{} + 1h, kLeast), kLeast);
  EXPECT_EQ(holding(64, 600).ahead(Clock::Point{} + 1h, kLeast), kLeast);  // one in six seconds
}

TEST(Holding, KeepsANextOneForEveryNodeWhereTrialsAreShort) {
  EXPECT_EQ(holding(4, 400).ahead(Clock::Point{} + 100s, kLeast), 4);   // four each second, on four nodes
  EXPECT_EQ(holding(64, 640).ahead(Clock::Point{} + 100s, kLeast), 7);  // 6.4 each second
}

TEST(Holding, NeverMoreThanOneForEveryNode) {
  EXPECT_EQ(holding(4, 4000).ahead(Clock::Point{} + 10s, kLeast), 4);
  EXPECT_EQ(holding(1, 4000).ahead(Clock::Point{} + 10s, kLeast), kLeast);
}

TEST(Holding, AnAllocationThatHasNotStartedIsKeptAtTheLeast) {
  Holding waiting = holding(4, 0);
  waiting.since.reset();
  EXPECT_EQ(waiting.ahead(Clock::Point{} + 1h, kLeast), kLeast);
}

TEST(Holding, HasTimeForFewerTrialsWhereTheyTakeLongerThanForetold) {
  Holding hour = holding(1, 0);
  hour.until = Clock::Point{} + 1h;
  hour.lasts_s = 3600;
  PlanEntry entry;
  entry.predicted.seconds = 100;
  EXPECT_TRUE(hour.has_time_for(entry, Clock::Point{} + 50min, 1));
  EXPECT_FALSE(hour.has_time_for(entry, Clock::Point{} + 50min, 4));
  EXPECT_TRUE(hour.has_time_for(entry, Clock::Point{}, 4));
}

}  // namespace
}  // namespace sweep::run
