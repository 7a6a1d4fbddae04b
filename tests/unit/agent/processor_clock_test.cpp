// The clock of deadlines on a machine that others keep busy; the waits are the test's own.
#include "worker/agent/evidence/processor_clock.h"

#include <gtest/gtest.h>

namespace sweep::agent {
namespace {

// `share` of each second one thread of the second process waits for a processor.
double after_a_minute(double share) {
  double now = 0;
  ProcessorClock clock([&](pid_t process) {
    const auto waited = static_cast<i64>(process == 2 ? share * now * 1e9 : 0);
    return std::map<pid_t, i64>{{process * 10, 0}, {process * 10 + 1, waited}};
  });
  for (; now < 60; now += 0.25) clock.at(now, {1, 2});
  return clock.at(now, {1, 2});
}

TEST(ProcessorClock, RunsSlowerWhileAThreadWaitsForAProcessor) {
  EXPECT_DOUBLE_EQ(after_a_minute(0), 60);
  EXPECT_NEAR(after_a_minute(0.75), 15, 1) << "the first second is not judged";
  EXPECT_NEAR(after_a_minute(1), 60 * kSlowestClock, 1) << "it never stands still";
}

TEST(ProcessorClock, IsTheSteadyClockWhereTheKernelDoesNotSay) {
  ProcessorClock clock([](pid_t) { return std::map<pid_t, i64>(); });
  clock.at(5, {1});
  clock.at(7, {1});
  EXPECT_DOUBLE_EQ(clock.at(10, {1}), 5);
}

TEST(ProcessorClock, AThreadThatBeginsHasWaitedSinceThen) {
  double now = 0;
  ProcessorClock clock([&](pid_t) {
    return std::map<pid_t, i64>{{static_cast<pid_t>(now), 500'000'000}};  // a new one at each look
  });
  for (; now < 10; now += 1) clock.at(now, {1});
  EXPECT_NEAR(clock.at(now, {1}), 5, 0.6);
}

}  // namespace
}  // namespace sweep::agent
