// PeerLease and PeerClock: silence, time in which this process did not run, round trips.
#include "worker/agent/net/peer_clock.h"

#include <gtest/gtest.h>

#include <limits>

namespace sweep::agent {
namespace {

TEST(PeerLease, IsOverAfterSoMuchSilence) {
  PeerLease lease(10);
  lease.begin(0);
  for (int second = 1; second < 10; ++second) EXPECT_FALSE(lease.look(second)) << second;
  EXPECT_TRUE(lease.look(10));
}

TEST(PeerLease, BeginsAnewWithEachMessage) {
  PeerLease lease(10);
  lease.begin(0);
  for (int second = 1; second < 100; ++second) {
    if (second % 9 == 0) lease.on_message();
    EXPECT_FALSE(lease.look(second)) << second;
  }
}

TEST(PeerLease, TimeInWhichThisProcessStoodStillCountsLittle) {
  PeerLease lease(10);
  lease.begin(0);
  EXPECT_FALSE(lease.look(3600)) << "two beats of two seconds";
  EXPECT_FALSE(lease.look(3605));
  EXPECT_TRUE(lease.look(3607));
}

TEST(PeerClock, TheQuickestRoundTripCounts) {
  PeerClock clock;
  EXPECT_EQ(clock.offset_ns(), 0);
  clock.answered(1000, 5600, 2000, 2000);
  EXPECT_EQ(clock.offset_ns(), 4100);
  clock.answered(3000, 7150, 3100, 3100);
  EXPECT_EQ(clock.offset_ns(), 4100);
  clock.answered(4000, 9999, 6000, 6000);
  EXPECT_EQ(clock.offset_ns(), 4100) << "a slow answer tells little";
}

TEST(PeerClock, AClockThatIsSetWhileAnAnswerIsOnItsWayMakesNoQuickRoundTrip) {
  PeerClock clock;
  clock.answered(1'000, 51'050, 1'100, 1'100);
  EXPECT_EQ(clock.offset_ns(), 50'000);
  clock.answered(2'000, 52'500, 3'000, 2'001);  // ours was set back by 999 meanwhile
  EXPECT_EQ(clock.offset_ns(), 50'000);
}

TEST(PeerClock, AClockThatWasSetCountsWithinAMinute) {
  constexpr i64 kSecond = 1'000'000'000;
  PeerClock clock;
  clock.answered(kSecond, 5'100, kSecond + 100, 100);
  EXPECT_EQ(clock.offset_ns(), 5'050);
  clock.answered(40 * kSecond, 9'200, 40 * kSecond + 200, 200);
  EXPECT_EQ(clock.offset_ns(), 5'050);
  clock.answered(62 * kSecond, 9'200, 62 * kSecond + 200, 200);
  EXPECT_EQ(clock.offset_ns(), 9'100);
}

TEST(PeerClock, NumbersThatAreNoTimesAreIgnored) {
  constexpr i64 kLeast = std::numeric_limits<i64>::min(), kMost = std::numeric_limits<i64>::max();
  PeerClock clock;
  for (const auto& [sent, theirs] : {std::pair{kLeast, i64{5}}, {kMost, 5}, {0, 5}, {900, kLeast}, {2000, 5}})
    clock.answered(sent, theirs, 1000, 1000);
  EXPECT_EQ(clock.offset_ns(), 0);
}

}  // namespace
}  // namespace sweep::agent
