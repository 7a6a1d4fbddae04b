#include "orchestrator/run/demand.h"

#include <gtest/gtest.h>

namespace sweep::run {
namespace {

store::Demand group(i64 nodes, i64 trials, double seconds_each, const char* hardware = "cpu") {
  return {hardware, nodes, 1, trials, seconds_each * static_cast<double>(trials), seconds_each, 0};
}

TEST(Demand, NothingPendingWantsNothing) {
  EXPECT_TRUE(allocations_wanted({}, {}, {8, 4, {}}).empty());
}

TEST(Demand, OneAllocationOfTheLargestByDefault) {
  const auto wanted = allocations_wanted({group(1, 1000, 60), group(4, 3, 60)}, {}, {0, 4, {}});
  ASSERT_EQ(wanted.size(), 1u);
  EXPECT_EQ(wanted[0].nodes, 4);
}

TEST(Demand, LongWorkGoesSideBySideUpToTheBounds) {
  const auto wanted = allocations_wanted({group(2, 100, 600)}, {}, {16, 4, {}});
  ASSERT_EQ(wanted.size(), 1u);
  EXPECT_EQ(wanted[0].nodes, 16) << "60000 s of two-node work, 1800 s each";
  const auto odd = allocations_wanted({group(3, 100, 600)}, {}, {16, 4, {}});
  ASSERT_EQ(odd.size(), 1u);
  EXPECT_EQ(odd[0].nodes, 15) << "whole multiples of what a trial needs";
  const auto few = allocations_wanted({group(2, 2, 3600)}, {}, {16, 4, {}});
  EXPECT_EQ(few.at(0).nodes, 4) << "no more places than trials";
}

TEST(Demand, AnAllocationOfSeveralKindsOfNodeIsOfOneTrial) {
  const auto wanted = allocations_wanted({group(2, 100, 600, "a+b")}, {}, {16, 4, {}});
  ASSERT_EQ(wanted.size(), 4u);
  for (const auto& each : wanted) EXPECT_EQ(each.nodes, 2) << "a part of more could be of one kind";
  const std::vector<Capacity> held{{"a+b", 4, 1, 1e6}};
  EXPECT_EQ(allocations_wanted({group(2, 1, 600, "a+b")}, held, {16, 4, {}}).size(), 1u);
  EXPECT_EQ(allocations_wanted({group(4, 1, 600, "a+b")}, held, {16, 4, {}}).size(), 0u);
}

TEST(Demand, WithoutAQueueAHostIsAcquiredForLittleWork) {
  Bounds hosts{4, 4, {}};
  hosts.min_work_per_node_s = 10;
  EXPECT_EQ(allocations_wanted({group(1, 12, 3)}, {}, hosts).at(0).nodes, 4) << "36 s of work, 10 s each";
  EXPECT_EQ(allocations_wanted({group(1, 2, 3)}, {}, hosts).at(0).nodes, 1);
  EXPECT_EQ(allocations_wanted({group(1, 12, 3)}, {}, {4, 4, {}}).at(0).nodes, 1);
}

Bounds idle(i64 nodes, i64 max_nodes = 0, i64 max_allocations = 4) {
  Bounds out{max_nodes, max_allocations, {}};
  out.idle_nodes = nodes;
  return out;
}

// Found on a cluster of four nodes: sixty short trials ran on one of them while three stood idle.
TEST(Demand, IdleNodesAreUsedWhileTrialsWait) {
  const auto wanted = allocations_wanted({group(1, 60, 2)}, {}, idle(4));
  ASSERT_EQ(wanted.size(), 4u);
  for (const auto& each : wanted) EXPECT_EQ(each.nodes, 1);
  EXPECT_EQ(allocations_wanted({group(1, 60, 2)}, {}, idle(0)).size(), 1u) << "nothing is idle";
  EXPECT_EQ(allocations_wanted({group(1, 60, 2)}, {}, idle(2)).size(), 2u);
  EXPECT_EQ(allocations_wanted({group(1, 60, 2)}, {}, idle(4, 3)).size(), 3u) << "max_nodes";
  EXPECT_EQ(allocations_wanted({group(1, 60, 2)}, {}, idle(4, 0, 2)).size(), 2u) << "max_allocations";
}

TEST(Demand, AnIdleNodeIsWorthSomeWork) {
  EXPECT_EQ(allocations_wanted({group(1, 15, 2)}, {}, idle(8)).size(), 3u) << "30 s of work, 10 s each";
  EXPECT_EQ(allocations_wanted({group(1, 2, 600)}, {}, idle(8)).size(), 2u) << "no more than trials";
  Bounds never = idle(8);
  never.spread_s = 0;
  EXPECT_EQ(allocations_wanted({group(1, 60, 2)}, {}, never).size(), 1u);
}

TEST(Demand, ManyIdleNodesAreTakenSideBySideInTheAllocationsThatMayBe) {
  const auto wanted = allocations_wanted({group(2, 500, 2)}, {}, idle(32, 32));
  i64 nodes = 0;
  for (const auto& each : wanted) nodes += each.nodes;
  EXPECT_EQ(nodes, 32);
  EXPECT_EQ(wanted.size(), 4u);
}

TEST(Demand, WhatIsHeldCountsBeforeIdleNodes) {
  EXPECT_EQ(allocations_wanted({group(1, 60, 2)}, {{"cpu", 4, 1, 7000}}, idle(4, 8)).size(), 3u);
  EXPECT_TRUE(allocations_wanted({group(1, 3, 2)}, {{"cpu", 4, 1, 7000}}, idle(4, 8)).empty());
}

TEST(Demand, NodesThatAreHeldAnywayAreAllTaken) {
  const auto wanted = allocations_wanted({group(1, 3, 60), group(3, 3, 60)}, {}, {4, 1, {}, 0, true});
  ASSERT_EQ(wanted.size(), 1u);
  EXPECT_EQ(wanted[0].nodes, 4);
}

TEST(Demand, AsManyGpusAsTrialsNeedOrSlotsAre) {
  const Wanted gpu{"h100-sxm-80gb", 1, 2, 60}, cpu{"cpu", 1, 2, 60};
  EXPECT_EQ(gpu.gpus(1), 2);
  EXPECT_EQ(gpu.gpus(8), 8);
  EXPECT_EQ(cpu.gpus(8), 0);
}

TEST(Demand, TimeFollowsThePredictionWithSlackAndIsBounded) {
  const auto wanted = allocations_wanted({group(1, 10, 60)}, {}, {1, 1, {}});
  ASSERT_EQ(wanted.size(), 1u);
  EXPECT_GE(wanted[0].seconds, 3 * 600);
  EXPECT_EQ(allocations_wanted({group(1, 10, 60)}, {}, {1, 1, 900}).at(0).seconds, 900);
}

TEST(Demand, WhatIsHeldCounts) {
  const Capacity held{"cpu", 4, 1, 7200};
  EXPECT_TRUE(allocations_wanted({group(1, 10, 60), group(4, 2, 60)}, {held}, {16, 4, {}}).empty());
  EXPECT_EQ(allocations_wanted({group(8, 1, 60)}, {held}, {16, 4, {}}).size(), 1u)
      << "it is too small for that";
  EXPECT_TRUE(allocations_wanted({group(8, 1, 60)}, {held}, {8, 4, {}}).empty())
      << "12 nodes are above the bound";
  EXPECT_TRUE(allocations_wanted({group(8, 1, 60)}, {held}, {16, 1, {}}).empty()) << "one at a time";
}

TEST(Demand, OneLongTrialNeedsOneAllocation) {
  const std::vector<store::Demand> one{group(1, 1, 7200)};
  EXPECT_EQ(allocations_wanted(one, {}, {4, 4, {}}).size(), 1u);
  EXPECT_TRUE(allocations_wanted(one, {{"cpu", 1, 1, 1800}}, {4, 4, {}}).empty())
      << "it is requested already";
  EXPECT_EQ(allocations_wanted(one, {{"cpu", 1, 1, -5400}}, {4, 4, {}}).size(), 1u)
      << "another one runs there";
}

TEST(Demand, TheWayOutOfTooFewNodesIsThatOfTheirOrigin) {
  const std::vector<store::Demand> wide{group(2, 1, 60)};
  const auto own = beyond_bounds(wide, {1, 1, {}}), existing = beyond_bounds(wide, {1, 1, {}, 0, true});
  ASSERT_TRUE(own && existing);
  EXPECT_NE(own->find("max_nodes"), std::string::npos);
  EXPECT_EQ(existing->find("max_nodes"), std::string::npos) << "no setting makes an existing job larger";
}

TEST(Demand, EveryHardwareItsOwn) {
  const auto wanted =
      allocations_wanted({group(1, 5, 60, "h100-sxm-80gb"), group(1, 5, 60, "a100-80gb")}, {}, {4, 4, {}});
  ASSERT_EQ(wanted.size(), 2u);
  EXPECT_NE(wanted[0].hardware, wanted[1].hardware);
}

TEST(Demand, TrialsWithoutAPredictionStillGetTime) {
  store::Demand unknown = group(1, 4, 0);
  unknown.unpredicted = 4;
  const auto wanted = allocations_wanted({unknown}, {}, {1, 1, {}});
  ASSERT_EQ(wanted.size(), 1u);
  EXPECT_GE(wanted[0].seconds, 300 + 4 * 120);
}

TEST(SlowdownEstimate, IsActualTimeOverPredictedTime) {
  EXPECT_EQ((SlowdownEstimate{60, 1}.factor()), 1) << "start-up is no measure";
  EXPECT_EQ((SlowdownEstimate{3600, 360}.factor()), 10);
  EXPECT_EQ((SlowdownEstimate{3600, 7200}.factor()), 1) << "faster than predicted asks for no less";
  EXPECT_EQ((SlowdownEstimate{3600, 0}.factor()), 3600) << "no trial counts for less than a second";
  SlowdownEstimate all{600, 60};
  all.add({600, 540});
  EXPECT_EQ(all.factor(), 2);
}

TEST(SlowdownEstimate, PredictsNodeSecondsAndNeverZero) {
  PlanEntry entry;
  entry.trial.nodes = 4;
  entry.predicted.seconds = 30;
  EXPECT_EQ(predicted_node_seconds(entry), 120);
  entry.predicted.seconds = 0.01;
  EXPECT_EQ(predicted_node_seconds(entry), 4);
  entry.predicted.seconds.reset();
  EXPECT_EQ(predicted_node_seconds(entry), 480);
}

}  // namespace
}  // namespace sweep::run
