#include "worker/rank/measure.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

namespace sweep::rank {
namespace {

class Measure : public ::testing::Test {
 protected:
  Measure() : device_(Trial{}, 0), progress_("") { record_.outcome = Outcome::kOk; }

  void run(const MeasurePlan& plan, const RunStep& step) {
    StopTogether stop(attempt_, 0, {});
    measure(plan, step, stop, device_, progress_, record_);
  }

  Attempt attempt_;
  Device device_;
  ProgressWriter progress_;
  RankRecord record_;
};

step::StepTimes step_with(double loss) {
  step::StepTimes times;
  times.step_ns = 10;
  times.loss = loss;
  return times;
}

TEST_F(Measure, MarksWarmUpInEveryRepeatAndKeepsEverySample) {
  run({2, 3, 2}, [] { return step_with(1); });
  ASSERT_EQ(record_.samples.size(), 10u);
  EXPECT_TRUE(record_.samples[6].warmup);
  EXPECT_FALSE(record_.samples[7].warmup);
  EXPECT_EQ(record_.samples[7].repeat, 1);
  EXPECT_EQ(record_.samples[7].step, 2);
  EXPECT_EQ(progress_.page()->step.load(), 10u);
}

TEST_F(Measure, ALossThatIsNotFiniteIsInvalidButTheStepsGoOnBecauseThePeersDo) {
  int n = 0;
  run({0, 4, 1}, [&] { return step_with(n++ == 1 ? std::numeric_limits<double>::quiet_NaN() : 1.0); });
  EXPECT_EQ(record_.outcome, Outcome::kInvalid);
  EXPECT_EQ(record_.samples.size(), 4u);
  EXPECT_NE(record_.message.find("step 1"), std::string::npos) << record_.message;
}

TEST_F(Measure, EndsOnceItIsClearlySlowerThanItsBound) {
  attempt_.stop_above_ms = 5e-6;  // steps take 10 ns
  run({2, 30, 1}, [] { return step_with(1); });
  EXPECT_EQ(record_.samples.size(), 8u) << "warm-up, and the six steps that an interval takes";
  EXPECT_EQ(record_.outcome, Outcome::kOk);
}

TEST_F(Measure, KeepsTheSamplesFromBeforeAFailure) {
  int n = 0;
  const auto failing = [&] {
    if (n++ == 2) throw std::runtime_error("broken");
    return step_with(1);
  };
  EXPECT_THROW(run({1, 5, 1}, failing), std::runtime_error);
  EXPECT_EQ(record_.samples.size(), 2u);
  EXPECT_EQ(record_.step, 2) << "where it ended";
  EXPECT_EQ(progress_.current(), Phase::kStep);
}

TEST_F(Measure, WithoutTimedStepsThereIsNoUsage) {
  run({2, 0, 1}, [] { return step_with(1); });
  EXPECT_FALSE(record_.cpu_percent);
  EXPECT_FALSE(record_.startup_ns);
}

TEST_F(Measure, TellsOfTimedStepsTheExpertsLoadTheScaleAndWhatWasSkipped) {
  int n = 0;
  run({1, 4, 1}, [&] {
    step::StepTimes times = step_with(1);
    times.expert_load = n < 1 ? 100.0 : n;
    times.loss_scale = 1 << n;
    times.skipped = n < 2;
    ++n;
    return times;
  });
  EXPECT_EQ(record_.expert_load, 2.5) << "of the steps 1 to 4; warm-up is not in it";
  EXPECT_EQ(record_.skipped_steps, 1);
  EXPECT_EQ(record_.loss_scale, 16);
}

TEST_F(Measure, ADenseModelWithoutALossScaleHasNeither) {
  run({0, 2, 1}, [] { return step_with(1); });
  EXPECT_FALSE(record_.expert_load);
  EXPECT_FALSE(record_.skipped_steps);
  EXPECT_FALSE(record_.loss_scale);
}

}  // namespace
}  // namespace sweep::rank
