// Tests what doctor's trial over the nodes shows, and what the ranks of a selftest report.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "orchestrator/driver/cluster_check.h"
#include "schema/codec.h"

namespace sweep::driver {
namespace {

Trial over_two_nodes() {
  SelfTestSetup setup;
  setup.nodes = 2, setup.ranks_per_node = 2;
  for (const auto& each : selftest_trials(setup))
    if (each.strategy == "dp") return *each.trial;
  return {};
}

SelfTestReport report_of(const Trial& trial, const SelfTestOutcome& outcome) {
  SelfTestReport out;
  out.outcomes.emplace(trial_id(trial), outcome);
  return out;
}

std::vector<Health> health_of(const std::vector<Finding>& findings) {
  std::vector<Health> out;
  for (const auto& finding : findings) out.push_back(finding.health);
  return out;
}

using Healths = std::vector<Health>;

TEST(NodeTrial, GoodIsThatTheNodesConnectAndComputeTheSame) {
  const auto trial = over_two_nodes();
  SelfTestOutcome equal;
  equal.outcome = Outcome::kOk;
  EXPECT_EQ(health_of(judge_node_trial(report_of(trial, equal), trial, 2, "")),
            (Healths{Health::kGood, Health::kGood}));
  auto unequal = equal;
  unequal.gradient = 0.5;
  EXPECT_EQ(health_of(judge_node_trial(report_of(trial, unequal), trial, 2, "")),
            (Healths{Health::kGood, Health::kBad}));
}

TEST(NodeTrial, ANodeThatDoesNotConnectIsTheFirstFinding) {
  const auto trial = over_two_nodes();
  const auto findings = judge_node_trial({}, trial, 1, "no route to host");
  ASSERT_EQ(health_of(findings), (Healths{Health::kBad, Health::kBad}));
  EXPECT_NE(findings[0].detail.find("no route to host"), std::string::npos);
  EXPECT_NE(findings[0].detail.find("TCP"), std::string::npos);
  const auto none = judge_node_trial({}, trial, 0, "refused by sbatch");
  EXPECT_EQ(none.at(0).detail.find("TCP"), std::string::npos)
      << "no agent started, so ports are not the cause";
}

TEST(NodeTrial, AnOutcomeOtherThanOkIsNamed) {
  const auto trial = over_two_nodes();
  SelfTestOutcome crash;
  crash.outcome = Outcome::kCrash, crash.reason = "a reason";
  const auto findings = judge_node_trial(report_of(trial, crash), trial, 2, "");
  ASSERT_EQ(health_of(findings), (Healths{Health::kGood, Health::kBad}));
  EXPECT_EQ(findings[1].detail.find("crash: a reason"), 0u);
}

RankRecord rank_that_reports(const nlohmann::json& answer) {
  RankRecord out;
  out.effective.proof = *from_json<Proof>(answer);
  return out;
}

TEST(SelfTestOutcomes, TheLargestDistanceOfAllRanksCounts) {
  SelfTestOutcome found;
  found.outcome = Outcome::kOk;
  add_rank(
      found,
      rank_that_reports({{"loss", 1e-7}, {"gradient", 2e-7}, {"value", 0}, {"exact", true}, {"worst", "a"}}),
      true);
  add_rank(
      found,
      rank_that_reports({{"loss", 3e-7}, {"gradient", 1e-7}, {"value", 0}, {"exact", true}, {"worst", "b"}}),
      false);
  EXPECT_EQ(found.loss, 3e-7);
  EXPECT_EQ(found.gradient, 2e-7);
  EXPECT_EQ(found.worst, "a");
  EXPECT_TRUE(found.bytes_exact);
  EXPECT_TRUE(passed(found, {}));
}

TEST(SelfTestOutcomes, ARankThatReportsNothingDoesNotPass) {
  SelfTestOutcome found;
  found.outcome = Outcome::kOk;
  RankRecord silent;
  add_rank(found, silent, true);
  EXPECT_FALSE(passed(found, {}));
}

TEST(SelfTestOutcomes, AFaultOfSeveralRanksStandsOnce) {
  SelfTestOutcome found;
  found.outcome = Outcome::kOk;
  const nlohmann::json answer{{"loss", 0}, {"gradient", 0}, {"value", 0}, {"traffic", {"too many bytes"}}};
  add_rank(found, rank_that_reports(answer), true);
  add_rank(found, rank_that_reports(answer), false);
  EXPECT_EQ(found.traffic, (std::vector<std::string>{"too many bytes"}));
  EXPECT_FALSE(passed(found, {}));
}

}  // namespace
}  // namespace sweep::driver
