// The result of an attempt of which every rank said ok.
#include "orchestrator/run/in_flight.h"

#include <gtest/gtest.h>

namespace sweep::run {
namespace {

// One rank with four timed steps, of which so many had no update.
InFlightAttempt ended(i64 skipped) {
  InFlightAttempt out;
  out.attempt.id = 1, out.attempt.trial.precision = Precision::kFp16;
  out.attempt.measure.steps = 4;
  RankRecord& record = out.reports.records[0];
  record.attempt = 1, record.outcome = Outcome::kOk;
  for (i64 step = 0; step < 4; ++step) {
    StepSample& sample = record.samples.emplace_back();
    sample.step = step, sample.step_ns = (10 + step) * 1'000'000,
    sample.optimizer_ns = (1 + step) * 1'000'000;
    sample.tokens = 8, sample.loss = 5;
  }
  record.skipped_steps = skipped, record.loss_scale = 256;
  out.reports.end.emplace().attempt = 1;
  return out;
}

TEST(ResultOf, StepsWithoutAnUpdateAreNotTimedAndWithoutAnyTheTrialIsInvalid) {
  const Result some = result_of(ended(3)), none = result_of(ended(4));
  EXPECT_EQ(some.outcome, Outcome::kOk) << some.reason;
  EXPECT_EQ(some.metrics.step_ms, 13);
  EXPECT_EQ(none.outcome, Outcome::kInvalid);
  EXPECT_EQ(none.phase, Phase::kStep);
  EXPECT_FALSE(none.reason.empty());
  EXPECT_FALSE(none.metrics.step_ms || none.metrics.tokens_per_s);
}

}  // namespace
}  // namespace sweep::run
