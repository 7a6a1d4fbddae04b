// Which launcher a run uses, and what the run loop gets from it.
#include "orchestrator/driver/launchers.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "orchestrator/driver/machine.h"
#include "orchestrator/driver/orchestrator_job.h"
#include "orchestrator/driver/script_preview.h"
#include "schema/codec.h"
#include "tests/support/must.h"

namespace sweep::driver {
namespace {

class LaunchersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("SLURM_JOB_ID");
    ::setenv("SWEEP_SITE", "/nonexistent/site.yaml", 1);
  }
  void TearDown() override { ::unsetenv("SWEEP_SITE"); }

  static LaunchSettings settings(const std::string& section) {
    auto read = launch_settings_from(nlohmann::json::parse(section));
    EXPECT_TRUE(read) << read.error().message;
    return read.value_or(LaunchSettings());
  }
  static LaunchChoice chosen(const std::string& section, const std::string& on = "", i64 job = 0) {
    LaunchRequest request;
    request.on = on, request.job = job;
    auto choice = choose_launcher(settings(section), request);
    EXPECT_TRUE(choice) << choice.error().message;
    return choice ? std::move(*choice) : LaunchChoice{};
  }
};

TEST_F(LaunchersTest, TheCommandLineComesBeforeTheGridAndTheGridBeforeTheDefault) {
  EXPECT_EQ(chosen("{}").on, "local");
  EXPECT_EQ(chosen(R"({"slurm": {}})").on, "slurm");
  EXPECT_EQ(chosen(R"({"slurm": {}})", "local").on, "local");
  EXPECT_EQ(chosen(R"({"slurm": {}, "ssh": {"hosts": ["a"]}})", "ssh").on, "ssh");
  EXPECT_FALSE(choose_launcher(settings(R"({"slurm": {}, "local": {}})"), {}))
      << "one of several must be named";
  LaunchRequest unknown;
  unknown.on = "pigeon";
  EXPECT_FALSE(choose_launcher({}, unknown));
}

TEST_F(LaunchersTest, AJobThatThisProcessRunsInIsUsedUnlessALauncherIsNamed) {
  ::setenv("SLURM_JOB_ID", "17", 1);
  const auto inside = chosen("{}");
  const auto by_grid = chosen(R"({"slurm": {}})");
  const auto by_name = chosen("{}", "slurm");
  const auto local = chosen(R"({"local": {}})");
  ::unsetenv("SLURM_JOB_ID");
  EXPECT_EQ(inside.on, "slurm");
  EXPECT_EQ(inside.existing_job, 17);
  EXPECT_EQ(by_grid.existing_job, 17);
  EXPECT_EQ(by_name.existing_job, 0) << "--on slurm asks for jobs of its own";
  EXPECT_EQ(local.on, "local");
  EXPECT_EQ(local.existing_job, 0);
  const auto named = chosen("{}", "", 23);
  EXPECT_EQ(named.on, "slurm");
  EXPECT_EQ(named.existing_job, 23);
  EXPECT_EQ(chosen("{}", "slurm", 23).existing_job, 23);
}

TEST_F(LaunchersTest, ASweepRunsAgainOnTheLauncherThatItHasKept) {
  SweepOptions kept;
  EXPECT_EQ(kept_launcher(kept, {})->on, "local");
  kept.launcher = "ssh", kept.launch = settings(R"({"ssh": {"hosts": ["a"]}})");
  EXPECT_EQ(kept_launcher(kept, {})->on, "ssh");
  LaunchRequest request;
  request.on = "slurm";
  EXPECT_EQ(kept_launcher(kept, request)->on, "slurm");
}

TEST_F(LaunchersTest, ScriptsAreThoseOfTheGridsLauncherOrOfTheFirstThatHasAny) {
  EXPECT_EQ(choose_script_launcher({})->on, "slurm");
  EXPECT_EQ(choose_script_launcher(settings(R"({"local": {}})"))->on, "slurm");
}

TEST_F(LaunchersTest, WhatALauncherBoundsReachesTheRunLoop) {
  const auto ssh = chosen(
      R"({"ssh": {"hosts": [{"host": "a", "hardware": "h100-sxm-80gb", "price_per_hour": 20, "slots": 4},
                            {"host": "b", "hardware": "h100-sxm-80gb", "price_per_hour": 25, "slots": 2}]}})");
  const auto limits = must(ssh.config->prepare({}));
  EXPECT_TRUE(limits.allocate_per_shape);
  EXPECT_EQ(limits.slots, 2) << "of the smallest host";
  EXPECT_EQ(limits.usd_per_node_hour.at("h100-sxm-80gb"), 25) << "of the most expensive host";
  const auto bounds = bounds_of(limits);
  EXPECT_EQ(bounds.max_nodes, 2);
  EXPECT_EQ(bounds.max_allocations, 2);
  EXPECT_EQ(bounds.min_work_per_node_s, 10) << "hosts wait in no queue";
  EXPECT_EQ(bounds.spread_s, run::Bounds{}.spread_s);
}

TEST_F(LaunchersTest, LocalRunsTakeTheSlotsOfTheCommandLineThenOfTheGridThenOfTheMachine) {
  const auto slots = [](const LaunchChoice& choice, i64 asked) {
    return choice.config->prepare({asked, 6})->slots;
  };
  EXPECT_EQ(slots(chosen(R"({"local": {"slots": 3}})"), 2), 2);
  EXPECT_EQ(slots(chosen(R"({"local": {"slots": 3}})"), 0), 3);
  EXPECT_EQ(slots(chosen("{}"), 0), 6);
}

TEST_F(LaunchersTest, HostsThatAreNotNamedAreKnownWhenTheyAreNeeded) {
  const auto choice = chosen(R"({"ssh": {}})");
  EXPECT_TRUE(slots_fit(choice, {}, {"h100-sxm-80gb"})) << "a plan may be made without hosts";
  EXPECT_TRUE(choice.config->lacking_hosts({}).has_value());
  EXPECT_FALSE(choice.config->prepare({}));
}

TEST_F(LaunchersTest, TheSmallerLimitCounts) {
  EXPECT_EQ(smaller_limit(2.0, 1.0), 1.0);
  EXPECT_EQ(smaller_limit(std::nullopt, 1.0), 1.0);
  EXPECT_EQ(smaller_limit(2.0, std::nullopt), 2.0);
  EXPECT_EQ(smaller_limit(std::nullopt, std::nullopt), std::nullopt);
}

TEST_F(LaunchersTest, DemandOfAPlanIsThatOfARun) {
  std::vector<PlanEntry> entries;
  for (i64 i = 0; i < 4; ++i) {
    PlanEntry entry;
    entry.trial.model = "tiny", entry.trial.spec.layers = 1, entry.trial.seq_len = 64 + i;
    entry.trial.nodes = i < 3 ? 1 : 2, entry.trial.dp = entry.trial.nodes;
    if (i < 2) entry.predicted.seconds = 10.0 * static_cast<double>(i + 1);
    entry.admitted = i != 2;
    if (!entry.admitted) entry.verdict = Outcome::kPruned, entry.rule = "test", entry.reason = "test";
    entry.id = trial_id(entry.trial), entry.order = i;
    entries.push_back(entry);
  }
  const auto demand = must(demand_of(entries));
  ASSERT_EQ(demand.size(), 2u);
  i64 trials = 0, unpredicted = 0;
  double seconds = 0;
  for (const auto& group : demand)
    trials += group.trials, unpredicted += group.unpredicted, seconds += group.predicted_s;
  EXPECT_EQ(trials, 3) << "pruned trials need nothing";
  EXPECT_EQ(unpredicted, 1);
  EXPECT_EQ(seconds, 30);
}

TEST_F(LaunchersTest, WhatARequestLeavesOpenIsAsTheSweepWasRun) {
  SweepOptions kept;
  kept.launcher = "ssh", kept.slots = 3, kept.start = "exec", kept.screen = "show";
  const LaunchRequest open = with_kept({}, kept);
  EXPECT_EQ(open.on, "ssh");
  EXPECT_EQ(open.slots, 3);
  EXPECT_EQ(open.start, RankStart::kExec);
  EXPECT_EQ(open.screen, "show");
  EXPECT_FALSE(program_paths(open).zygote);
  LaunchRequest own;
  own.on = "slurm", own.slots = 2, own.start = RankStart::kZygote, own.screen = "leave_out";
  const LaunchRequest asked = with_kept(own, kept);
  EXPECT_EQ(asked.on, "slurm");
  EXPECT_EQ(asked.slots, 2);
  EXPECT_EQ(asked.start, RankStart::kZygote);
  EXPECT_EQ(asked.screen, "leave_out");
  const LaunchRequest nothing = with_kept({}, {});
  EXPECT_EQ(nothing.slots, 0);
  EXPECT_FALSE(nothing.start);
  EXPECT_TRUE(program_paths(nothing).zygote);
}

TEST_F(LaunchersTest, AJobStartsTrialsAsItsRequestDoes) {
  LaunchChoice choice;
  choice.on = "slurm";
  EXPECT_EQ(launch_words(choice, {}), (std::vector<std::string>{"--on", "slurm"}));
  LaunchRequest request;
  request.start = RankStart::kExec, request.screen = "show", request.slots = 2, request.rank = "/r";
  choice.existing_job = 7;
  EXPECT_EQ(launch_words(choice, request),
            (std::vector<std::string>{"--on", "slurm", "--start", "exec", "--rank", "/r", "--screen", "show",
                                      "--slots", "2", "--jobid", "7"}));
}

}  // namespace
}  // namespace sweep::driver
