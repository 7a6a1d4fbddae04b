// Retry policy: the state and the final attempt of a trial, by what its attempts came to.
#include "orchestrator/run/retry_policy.h"

#include <gtest/gtest.h>

namespace sweep::run {
namespace {

using store::PastAttempt;
using store::TrialDecision;
using store::TrialHistory;

// Attempts with these outcomes, numbered from 1.
TrialHistory tried(std::initializer_list<Outcome> outcomes) {
  TrialHistory trial;
  for (const Outcome outcome : outcomes)
    trial.attempts.push_back({static_cast<i64>(trial.attempts.size()) + 1, outcome, State::kFinished, true});
  return trial;
}

TrialDecision decided(const TrialHistory& trial) {
  return decide_trial(trial, {});
}

TrialDecision finished(i64 attempt, Outcome outcome) {
  return {State::kFinished, attempt, outcome};
}
TrialDecision again(std::optional<i64> attempt, std::optional<Outcome> outcome) {
  return {State::kPending, attempt, outcome};
}

TEST(RetryPolicy, ATrialThatWasNeverTriedIsPending) {
  EXPECT_EQ(decided(tried({})), again(std::nullopt, std::nullopt));
}

TEST(RetryPolicy, EachOutcomeHasItsLimit) {
  for (const Outcome stands : {Outcome::kOk, Outcome::kOom, Outcome::kInvalid, Outcome::kUnsupported,
                               Outcome::kHang, Outcome::kTimeout})
    EXPECT_EQ(decided(tried({stands})), finished(1, stands)) << to_string(stands);
  EXPECT_EQ(decided(tried({Outcome::kCrash})), again(1, Outcome::kCrash));
  EXPECT_EQ(decided(tried({Outcome::kCrash, Outcome::kCrash})), finished(2, Outcome::kCrash));
  EXPECT_EQ(decided(tried({Outcome::kCrash, Outcome::kOk})), finished(2, Outcome::kOk));
}

TEST(RetryPolicy, TheSweepsOptionsSetTheLimits) {
  SweepOptions options;
  options.retries_crash = 0, options.retries_hang = 1, options.retries_timeout = 2;
  EXPECT_EQ(decide_trial(tried({Outcome::kCrash}), options).state, State::kFinished);
  EXPECT_EQ(decide_trial(tried({Outcome::kHang}), options).state, State::kPending);
  EXPECT_EQ(decide_trial(tried({Outcome::kHang, Outcome::kHang}), options).state, State::kFinished);
  EXPECT_EQ(decide_trial(tried({Outcome::kTimeout, Outcome::kTimeout}), options).state, State::kPending);
}

TEST(RetryPolicy, NothingOfAnImportedSweepIsTriedAgain) {
  SweepOptions options;
  options.imported = true;
  for (const Outcome outcome : {Outcome::kCrash, Outcome::kNodeLost})
    EXPECT_EQ(decide_trial(tried({outcome}), options), finished(1, outcome));
}

TEST(RetryPolicy, AnImportedRowThatWasNeverRunHidesEarlierResults) {
  TrialHistory trial = tried({Outcome::kOk});
  trial.admitted = false, trial.plan_outcome = Outcome::kPruned;
  SweepOptions options;
  EXPECT_EQ(decide_trial(trial, options).outcome, Outcome::kOk) << "of a plan's trial the result stands";
  options.imported = true;
  EXPECT_EQ(decide_trial(trial, options), (TrialDecision{State::kFinished, std::nullopt, Outcome::kPruned}));
}

TEST(RetryPolicy, ALostNodeIsNoResultUntilItsTriesAreUsedUp) {
  using enum Outcome;
  EXPECT_EQ(decided(tried({kNodeLost, kNodeLost, kNodeLost})), again(std::nullopt, std::nullopt));
  EXPECT_EQ(decided(tried({kNodeLost, kNodeLost, kNodeLost, kNodeLost})), finished(4, kNodeLost));
  EXPECT_EQ(decided(tried({kNodeLost, kCrash, kNodeLost})), again(2, kCrash))
      << "lost nodes use up no retry of a crash";
}

TEST(RetryPolicy, ACancelledAttemptUsesUpNothing) {
  EXPECT_EQ(decided(tried(std::initializer_list<Outcome>{Outcome::kCancelled, Outcome::kCancelled,
                                                         Outcome::kCancelled, Outcome::kCancelled})),
            again(std::nullopt, std::nullopt));
}

TEST(RetryPolicy, WhileAnAttemptIsUnderWayTheTrialIsWhereTheAttemptIs) {
  for (const State state : {State::kPosted, State::kRunning}) {
    TrialHistory trial = tried({Outcome::kCrash});
    trial.attempts.push_back({2, std::nullopt, state, true});
    EXPECT_EQ(decided(trial), (TrialDecision{state, 1, Outcome::kCrash}));
  }
}

TEST(RetryPolicy, AReopenedTrialShowsItsOldResultAndHasFreshTries) {
  TrialHistory trial = tried({Outcome::kOk});
  trial.attempts[0].fresh = false;
  EXPECT_EQ(decided(trial), again(1, Outcome::kOk));
  trial.attempts.push_back({2, Outcome::kCrash, State::kFinished, true});
  EXPECT_EQ(decided(trial), again(2, Outcome::kCrash));
}

TEST(RetryPolicy, WithoutAMeasurementThePlansDecisionStays) {
  TrialHistory pruned = tried({});
  pruned.admitted = false;
  EXPECT_EQ(decided(pruned), (TrialDecision{State::kFinished, std::nullopt, Outcome::kPruned}));
  TrialHistory measured = tried({Outcome::kOk});
  measured.admitted = false;
  EXPECT_EQ(decided(measured), finished(1, Outcome::kOk));
}

TEST(RetryPolicy, ARetiredTrialKeepsItsResultAndIsNotRun) {
  TrialHistory trial = tried({Outcome::kCrash});
  trial.retired = true;
  EXPECT_EQ(decided(trial), (TrialDecision{State::kRetired, 1, Outcome::kCrash}));
}

}  // namespace
}  // namespace sweep::run
