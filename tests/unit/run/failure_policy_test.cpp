// Failure policy: losses in a row, known hosts, preemptions, and cancelled attempts.
#include "orchestrator/run/failure_policy.h"

#include <gtest/gtest.h>

namespace sweep::run {
namespace {

constexpr LossLimits kLimits{3, 10};

// The last decision after so many of the same loss.
LossDecision repeated(const Loss& loss, int times) {
  LossDecision decision;
  for (int i = 0; i < times; ++i) decision = decide_loss(loss, decision.counts, kLimits);
  return decision;
}

TEST(FailurePolicy, LossesInARowEndTheRun) {
  EXPECT_FALSE(repeated({}, 2).breaker);
  EXPECT_EQ(repeated({}, 3).breaker, Breaker::kLosses);
}

TEST(FailurePolicy, AFewLossesAmongManyThatWorkEndNothing) {
  Loss loss;
  loss.others_at_work = 60;
  EXPECT_FALSE(repeated(loss, 60).breaker);
  EXPECT_EQ(repeated(loss, 61).breaker, Breaker::kLosses);
}

TEST(FailurePolicy, AnAllocationThatHadResultsIsNotCounted) {
  Loss loss;
  loss.results = 1;
  LossDecision expected;
  expected.counts = {2, 9};
  EXPECT_EQ(decide_loss(loss, {2, 9}, kLimits), expected);
}

TEST(FailurePolicy, AKnownHostIsExcludedAndOpensNoBreaker) {
  Loss loss;
  loss.host_known = true;
  const auto decision = repeated(loss, 100);
  EXPECT_TRUE(decision.cool_down);
  EXPECT_TRUE(decision.count_against_host);
  EXPECT_FALSE(decision.breaker);
  EXPECT_EQ(decision.counts, LossCounts{});
}

TEST(FailurePolicy, AKnownHostCoolsDownAlsoAfterResults) {
  Loss loss;
  loss.host_known = true, loss.results = 5;
  const auto decision = decide_loss(loss, {}, kLimits);
  EXPECT_TRUE(decision.cool_down);
  EXPECT_FALSE(decision.count_against_host);
}

TEST(FailurePolicy, PreemptionsCountByThemselvesAndAgainstNoHost) {
  Loss loss;
  loss.preempted = loss.had_time = true;
  EXPECT_FALSE(repeated(loss, 9).breaker);
  const auto decision = repeated(loss, 10);
  EXPECT_EQ(decision.breaker, Breaker::kPreemptions);
  EXPECT_EQ(decision.counts, (LossCounts{0, 10}));
  EXPECT_FALSE(decision.count_against_host);
}

TEST(FailurePolicy, AnAllocationWhoseTimeWasUpIsALoss) {
  Loss loss;
  loss.preempted = true;
  EXPECT_EQ(repeated(loss, 3).breaker, Breaker::kLosses);
}

TEST(FailurePolicy, ACancelledAttemptByItsCauseAndWhatCameBefore) {
  for (const auto cause : {EndCause::kCancelled, EndCause::kAgentStopping, EndCause::kNodeLost}) {
    EXPECT_EQ(decide_cancelled(true, cause, 0), AfterCancel::kNothing);
    EXPECT_EQ(decide_cancelled(false, cause, 7), AfterCancel::kReturned);
  }
  EXPECT_EQ(decide_cancelled(false, std::nullopt, 7), AfterCancel::kReturned);
  EXPECT_EQ(decide_cancelled(false, EndCause::kNoTime, 7), AfterCancel::kFinish);
  EXPECT_EQ(decide_cancelled(false, EndCause::kNoTime, 0), AfterCancel::kReturned)
      << "an allocation too short for its first trial would be requested for ever";
}

TEST(FailurePolicy, OnlyAStartedAttemptOfALostAllocationUsesUpARetry) {
  EXPECT_EQ(outcome_of_unfinished(false, false, true), Outcome::kNodeLost);
  EXPECT_EQ(outcome_of_unfinished(false, false, false), Outcome::kCancelled);
  EXPECT_EQ(outcome_of_unfinished(false, true, true), Outcome::kCancelled);
  EXPECT_EQ(outcome_of_unfinished(true, false, true), Outcome::kCancelled);
}

TEST(FailurePolicy, ALostNodeIsWorthAnotherAllocationByTheWorkThatWaits) {
  EXPECT_FALSE(worth_another_allocation(0, 1));
  EXPECT_FALSE(worth_another_allocation(120, 2));
  EXPECT_TRUE(worth_another_allocation(121, 2));
}

}  // namespace
}  // namespace sweep::run
