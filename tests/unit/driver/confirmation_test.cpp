// A confirmation keeps parts of the sweep that it confirms.
#include "orchestrator/driver/confirmation.h"

#include <gtest/gtest.h>

namespace sweep::driver {
namespace {

SweepOptions measured() {
  SweepOptions out;
  out.measure = MeasurePlan{1, 10, 1, true};
  out.trial_seconds = 8, out.hang_seconds = 5, out.gpu_hours = 2, out.usd = 7;
  out.strategy = "search", out.auto_micro_batch = true;
  return out;
}

TEST(Confirmation, TheBoundOfAnAttemptGrowsWithItsSteps) {
  const auto own = confirming_options(measured(), {});
  EXPECT_EQ(own.measure, (MeasurePlan{1, 30, 3, false}));
  EXPECT_EQ(own.trial_seconds, 8 * 9);
  EXPECT_EQ(own.hang_seconds, 5) << "a step takes no longer";
  ConfirmRequest few;
  few.steps = 5, few.repeats = 1;
  EXPECT_EQ(confirming_options(measured(), few).trial_seconds, 8) << "never less than it was";
}

TEST(Confirmation, WhatIsNamedIsMeasuredWithoutLimitOrStrategy) {
  const auto own = confirming_options(measured(), {});
  EXPECT_FALSE(own.gpu_hours || own.usd || own.auto_micro_batch);
  EXPECT_EQ(own.strategy, "");
  auto unbounded = measured();
  unbounded.trial_seconds.reset();
  EXPECT_FALSE(confirming_options(unbounded, {}).trial_seconds);
}

}  // namespace
}  // namespace sweep::driver
