// Steps over their ranks, warm-up included.
#include "orchestrator/metrics/steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sweep::metrics {
namespace {

StepSample step_of(i64 repeat, i64 step, i64 ns, double loss) {
  StepSample s;
  s.repeat = repeat, s.step = step, s.warmup = step == 0;
  s.step_ns = ns, s.forward_ns = ns / 4, s.backward_ns = ns / 2, s.optimizer_ns = ns / 8;
  s.exposed_comm_ns = ns / 10, s.tokens = 100, s.loss = loss, s.alloc_retries = 1;
  return s;
}

RankRecord record_of(i64 number, std::vector<StepSample> samples) {
  RankRecord r;
  r.rank = number, r.samples = std::move(samples);
  return r;
}

TEST(WholeSteps, TimesAreTheSlowestRanksAndTokensAreSummed) {
  const std::vector<RankRecord> records{record_of(0, {step_of(0, 0, 800, 4), step_of(0, 1, 400, 3)}),
                                        record_of(1, {step_of(0, 0, 1600, 2), step_of(0, 1, 200, 1)})};
  const auto steps = whole_steps(records, 2);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_TRUE(steps[0].warmup);
  EXPECT_FALSE(steps[1].warmup);
  EXPECT_EQ(steps[0].step_ns, 1600);
  EXPECT_EQ(steps[1].step_ns, 400);
  EXPECT_EQ(steps[1].forward_backward_ns, 300);
  EXPECT_EQ(steps[1].exposed_comm_ns, 40);
  EXPECT_EQ(steps[1].tokens, 200);
  EXPECT_EQ(steps[1].alloc_retries, 2);
  EXPECT_DOUBLE_EQ(*steps[0].loss, 3);
}

TEST(WholeSteps, AStepThatARankLacksIsLeftOutAndRepeatsAreKeptApart) {
  const std::vector<RankRecord> records{
      record_of(0, {step_of(0, 0, 8, 1), step_of(0, 1, 8, 1), step_of(1, 0, 8, 1), step_of(1, 1, 8, 1)}),
      record_of(1, {step_of(0, 0, 8, 1), step_of(1, 0, 8, 1), step_of(1, 1, 8, 1)})};
  const auto steps = whole_steps(records, 2);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].repeat, 0);
  EXPECT_EQ(steps[1].repeat, 1);
  EXPECT_EQ(steps[2].step, 1);
}

TEST(WholeSteps, WhatOneRankCannotSeparateIsAbsentAndNanStays) {
  StepSample blind = step_of(0, 1, 8, std::numeric_limits<double>::quiet_NaN());
  blind.exposed_comm_ns.reset();
  const auto steps = whole_steps(std::vector{record_of(0, {step_of(0, 1, 8, 1)}), record_of(1, {blind})}, 2);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_FALSE(steps[0].exposed_comm_ns);
  EXPECT_TRUE(std::isnan(*steps[0].loss));
}

}  // namespace
}  // namespace sweep::metrics
