// The figure for the time left: by what trials took, by the nodes that work, and unmoved by what was lost.
#include "orchestrator/run/time_left.h"

#include <gtest/gtest.h>

namespace sweep::run {
namespace {

using store::Workload;

Workload to_do(i64 trials, double predicted_each, i64 nodes = 1) {
  Workload out;
  out.to_do = {{nodes, trials, 0, static_cast<double>(trials) * predicted_each, 0}};
  return out;
}

// Trials one after another in an allocation, each of them `took` with a gap of 10 ms.
void ran(Workload& work, const std::string& allocation, int trials, double predicted, double took,
         double from = 0, i64 nodes = 1) {
  for (int i = 0; i < trials; ++i, from += took + 0.01)
    work.done.insert(work.done.begin(), {predicted, from, from + took, nodes, allocation});
}

TEST(TimeLeft, BeforeAnythingRanItIsThePrediction) {
  EXPECT_DOUBLE_EQ(seconds_left(to_do(28, 0.9)).value(), 28 * 0.9);
  EXPECT_FALSE(seconds_left(Workload{}).has_value());
}

TEST(TimeLeft, FollowsThePaceOfWhatHasEnded) {
  Workload work = to_do(30, 0.35);
  ran(work, "a1", 10, 0.35, 2.2);
  work.open = {{"a1", 1}};
  EXPECT_NEAR(seconds_left(work).value(), 30 * 2.21, 0.3 * 66);
}

// Found by chaos: "about 34 min left" where 4 min were, since the time of the losses counted as the pace of
// trials.
TEST(TimeLeft, WhatWasLostDoesNotSlowWhatIsLeft) {
  Workload work = to_do(100, 0.35);
  ran(work, "a1", 3, 0.35, 2.2, 0);
  ran(work, "a2", 2, 0.35, 2.2, 900);   // found its nodes a quarter of an hour later
  ran(work, "a3", 1, 0.35, 2.2, 1800);  // and the next one again
  ran(work, "a3", 1, 0.35, 2.2, 1860);  // which stood still for a minute
  work.open = {{"a3", 1}};
  EXPECT_NEAR(seconds_left(work).value(), 100 * 2.21, 0.3 * 221);
}

TEST(TimeLeft, NodesThatWorkSideBySideShareIt) {
  Workload work = to_do(60, 2);
  for (int node = 0; node < 4; ++node) ran(work, "a1", 5, 2, 2.1);
  work.open = {{"a1", 4}};
  EXPECT_NEAR(seconds_left(work).value(), 60 * 2.1 / 4, 0.3 * 31.5);
  work.open.emplace_back("a2", 4);  // another one has just come
  EXPECT_NEAR(seconds_left(work).value(), 60 * 2.1 / 8, 0.3 * 15.8);
}

TEST(TimeLeft, ATrialOverTwoNodesCountsTwice) {
  Workload work = to_do(10, 10, 2);
  ran(work, "a1", 5, 10, 10, 0, 2);
  work.open = {{"a1", 2}};
  EXPECT_NEAR(seconds_left(work).value(), 100, 3);
}

TEST(TimeLeft, StartingCostsTheSameForSmallAndLargeTrials) {
  Workload work = to_do(20, 30);
  for (const double predicted : {0.3, 0.6, 1.2, 2.4, 4.8})
    ran(work, "a1", 1, predicted, 2 + 1.1 * predicted, predicted * 100);
  work.open = {{"a1", 1}};
  EXPECT_NEAR(seconds_left(work).value(), 20 * (2 + 33), 0.3 * 700);
}

TEST(TimeLeft, NotKnownBeforeTheFirstResultOfWhatNothingPredicts) {
  Workload work = to_do(3, 0);
  work.to_do.front().unpredicted = 3;
  EXPECT_FALSE(seconds_left(work).has_value());
  ran(work, "a1", 1, 0, 7);
  work.done.front().predicted_s.reset();
  EXPECT_NEAR(seconds_left(work).value(), 21, 1e-9);
}

TEST(TimeLeft, NeverLessThanTheLongestOne) {
  Workload work = to_do(2, 100);
  work.open = {{"a1", 64}};
  EXPECT_DOUBLE_EQ(seconds_left(work).value(), 100);
}

}  // namespace
}  // namespace sweep::run
