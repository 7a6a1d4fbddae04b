#include "runtime/early_stop.h"

#include <gtest/gtest.h>

namespace sweep {
namespace {

constexpr i64 kMs = 1'000'000;

TEST(EarlyStopTest, WithoutABoundNothingStops) {
  EarlyStop stop(std::nullopt);
  for (int i = 0; i < 20; ++i) stop.add(100 * kMs);
  EXPECT_FALSE(stop.is_clear());
}

TEST(EarlyStopTest, TakesSixStepsThatAreAllSlower) {
  EarlyStop stop(10);
  for (int i = 0; i < 5; ++i) stop.add(11 * kMs);
  EXPECT_FALSE(stop.is_clear());
  stop.add(11 * kMs);
  EXPECT_TRUE(stop.is_clear());
}

TEST(EarlyStopTest, OneFastStepAmongFewKeepsItRunning) {
  EarlyStop stop(10);
  for (const i64 ms : {11, 11, 9, 11, 11, 11}) stop.add(ms * kMs);
  EXPECT_FALSE(stop.is_clear());
  for (int i = 0; i < 10; ++i) stop.add(11 * kMs);
  EXPECT_TRUE(stop.is_clear()) << "of many steps one may be fast";
}

}  // namespace
}  // namespace sweep
