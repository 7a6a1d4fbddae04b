// How far ahead an allocation's inbox is kept: by the pace at which its trials end.
#include <gtest/gtest.h>

#include "orchestrator/run/held_allocation.h"

namespace sweep::run {
namespace {

using namespace std::chrono_literals;
constexpr i64 kLeast = 2;

HeldAllocation holding(i64 nodes, i64 landed) {
  HeldAllocation out;
  out.request.nodes = nodes;
  out.landed = landed;
  out.since = Clock::Point{};
  return out;
}

TEST(HeldAllocation, KeepsAFewAheadOfLongTrials) {
  EXPECT_EQ(holding(64, 0).ahead(Clock::Point{} + 1h, kLeast), kLeast);
  EXPECT_EQ(holding(64, 600).ahead(Clock::Point{} + 1h, kLeast), kLeast);  // one in six seconds
}

TEST(HeldAllocation, KeepsANextOneForEveryNodeWhereTrialsAreShort) {
  EXPECT_EQ(holding(4, 400).ahead(Clock::Point{} + 100s, kLeast), 4);   // four each second, on four nodes
  EXPECT_EQ(holding(64, 640).ahead(Clock::Point{} + 100s, kLeast), 7);  // 6.4 each second
}

TEST(HeldAllocation, NeverMoreThanOneForEveryNode) {
  EXPECT_EQ(holding(4, 4000).ahead(Clock::Point{} + 10s, kLeast), 4);
  EXPECT_EQ(holding(1, 4000).ahead(Clock::Point{} + 10s, kLeast), kLeast);
}

TEST(HeldAllocation, AnAllocationThatHasNotStartedIsKeptAtTheLeast) {
  HeldAllocation waiting = holding(4, 0);
  waiting.since.reset();
  EXPECT_EQ(waiting.ahead(Clock::Point{} + 1h, kLeast), kLeast);
}

TEST(HeldAllocation, HasTimeForFewerTrialsWhereTheyTakeLongerThanForetold) {
  HeldAllocation hour = holding(1, 0);
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
