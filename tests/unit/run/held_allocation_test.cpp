// How far ahead an allocation's inbox is kept: by the pace at which its trials end.
#include "orchestrator/run/held_allocation.h"

#include <gtest/gtest.h>

namespace sweep::run {
namespace {

using namespace std::chrono_literals;
constexpr i64 kLeast = 2;

HeldAllocation held(i64 nodes, i64 results) {
  HeldAllocation out;
  out.request.nodes = nodes;
  out.results = results;
  out.since = Clock::Point{};
  return out;
}

TEST(HeldAllocation, KeepsAFewAheadOfLongTrials) {
  EXPECT_EQ(held(64, 0).ahead(Clock::Point{} + 1h, kLeast), kLeast);
  EXPECT_EQ(held(64, 600).ahead(Clock::Point{} + 1h, kLeast), kLeast);  // one in six seconds
}

TEST(HeldAllocation, KeepsANextOneForEveryNodeWhereTrialsAreShort) {
  EXPECT_EQ(held(4, 400).ahead(Clock::Point{} + 100s, kLeast), 4);   // four each second, on four nodes
  EXPECT_EQ(held(64, 640).ahead(Clock::Point{} + 100s, kLeast), 7);  // 6.4 each second
}

TEST(HeldAllocation, NeverMoreThanOneForEveryNode) {
  EXPECT_EQ(held(4, 4000).ahead(Clock::Point{} + 10s, kLeast), 4);
  EXPECT_EQ(held(1, 4000).ahead(Clock::Point{} + 10s, kLeast), kLeast);
}

TEST(HeldAllocation, AnAllocationThatHasNotStartedIsKeptAtTheLeast) {
  HeldAllocation waiting = held(4, 0);
  waiting.since.reset();
  EXPECT_EQ(waiting.ahead(Clock::Point{} + 1h, kLeast), kLeast);
}

TEST(HeldAllocation, HasTimeForFewerTrialsWhereTheyTakeLongerThanPredicted) {
  HeldAllocation hour = held(1, 0);
  hour.until = Clock::Point{} + 1h;
  hour.total_s = 3600;
  PlanEntry entry;
  entry.predicted.seconds = 100;
  EXPECT_TRUE(hour.has_time_for(entry, Clock::Point{} + 50min, 1));
  EXPECT_FALSE(hour.has_time_for(entry, Clock::Point{} + 50min, 4));
  EXPECT_TRUE(hour.has_time_for(entry, Clock::Point{}, 4));
}

TEST(HeldAllocation, IsOverdueOnceEachAttemptMustHaveEndedAndNothingWasHeard) {
  HeldAllocation one = held(1, 0);
  one.on_contact(Clock::Point{});
  EXPECT_FALSE(one.overdue(Clock::Point{} + 10h)) << "it has no work";
  for (const double total_s : {100.0, 900.0}) {
    Attempt attempt;
    attempt.id = static_cast<i64>(total_s), attempt.deadlines.total_s = total_s;
    one.attempts.add(attempt, PlanEntry());
  }
  EXPECT_FALSE(one.overdue(Clock::Point{} + 950s));
  EXPECT_TRUE(one.overdue(Clock::Point{} + 970s));
  one.on_contact(Clock::Point{} + 960s);
  EXPECT_FALSE(one.overdue(Clock::Point{} + 970s));
}

}  // namespace
}  // namespace sweep::run
