// Dispatch: how many attempts an inbox gets, and what the agent is told of a trial.
#include "orchestrator/run/dispatch.h"

#include <gtest/gtest.h>

#include "orchestrator/run/acquisition.h"
#include "tests/support/must.h"

namespace sweep::run {
namespace {

TEST(Dispatch, NodesAreKeptBusyAndTheInboxALittleAhead) {
  EXPECT_EQ(choose_fill(3, 4, 2, true), Fill::kYes);
  EXPECT_EQ(choose_fill(5, 4, 2, true), Fill::kYes);
  EXPECT_EQ(choose_fill(6, 4, 2, true), Fill::kNo);
}

TEST(Dispatch, BesideOthersAnAllocationQueuesNoMoreThanItsShare) {
  EXPECT_EQ(choose_fill(3, 4, 2, false), Fill::kYes) << "no node is idle";
  EXPECT_EQ(choose_fill(4, 4, 2, false), Fill::kItsShare);
  EXPECT_EQ(choose_fill(6, 4, 2, false), Fill::kNo);
  // 4 of 8 nodes, 12 nodes of work: six are its share.
  EXPECT_TRUE(within_share(5, 4, 12, 8));
  EXPECT_FALSE(within_share(6, 4, 12, 8));
}

TEST(Dispatch, AnAttemptCarriesTheSettingsOfTheRun) {
  PlanEntry entry;
  entry.id = "t";
  entry.predicted.seconds = 10;
  entry.trial.hardware = "h100";
  Settings settings;
  settings.start = RankStart::kExec;
  settings.hang_seconds = 7, settings.trial_seconds = 70;
  settings.checkpoint_folder = "/scratch";
  settings.usd_per_node_hour = {{"h100", 20}, {"cpu", 1}};
  const auto attempt = must(attempt_for(entry, settings, 3));
  EXPECT_EQ(attempt.trial_id, "t");
  EXPECT_EQ(attempt.start, RankStart::kExec);
  EXPECT_EQ(attempt.deadlines.step_s, 7);
  EXPECT_EQ(attempt.deadlines.startup_s, 7);
  EXPECT_EQ(attempt.deadlines.around_s, 7);
  EXPECT_EQ(attempt.checkpoint_folder, "/scratch");
  EXPECT_EQ(attempt.deadlines.total_s, 70);
  EXPECT_EQ(attempt.predicted_s, 30) << "trials take three times as long as predicted";
  EXPECT_EQ(attempt.usd_per_node_hour, 20);
  EXPECT_TRUE(attempt.rehearsed_ranks.empty());
}

TEST(Dispatch, WhatComesBeforeTheFirstStepMayHaveADeadlineOfItsOwn) {
  PlanEntry entry;
  Settings settings;
  settings.hang_seconds = 7, settings.start_seconds = 300;
  const auto attempt = must(attempt_for(entry, settings, 1));
  EXPECT_EQ(attempt.deadlines.startup_s, 300);
  EXPECT_EQ(attempt.deadlines.first_step_s, 300);
  EXPECT_GT(attempt.deadlines.total_s, 600) << "a long start is no timeout";
  EXPECT_EQ(attempt.deadlines.step_s, 7);
}

TEST(Acquisition, TellsWhichTrialsHaveTooFewHosts) {
  store::Demand small, large;
  small.nodes = 1, small.trials = 3, small.hardware = "cpu";
  large.nodes = 4, large.trials = 2, large.hardware = "cpu";
  EXPECT_EQ(too_few_hosts({{small, launch::Room{0, 2}}}, {}), "") << "busy hosts are awaited";
  EXPECT_EQ(too_few_hosts({{large, std::nullopt}}, {}), "") << "a scheduler finds the nodes";
  EXPECT_NE(too_few_hosts({{small, launch::Room{2, 2}}, {large, launch::Room{2, 2}}}, {}), "");
}

TEST(Acquisition, AnAllocationOfThisMachineTakesEveryTrial) {
  HeldAllocation held;
  held.request.nodes = 2, held.request.hardware = "h100", held.request.ranks_per_node = 8;
  Settings settings;
  EXPECT_FALSE(fit_of(held, settings));
  settings.allocate_per_shape = true;
  const auto fit = must(fit_of(held, settings));
  EXPECT_EQ(std::tuple(fit.nodes, fit.hardware, fit.gpus_per_node), std::tuple(2, "h100", 8));
}

}  // namespace
}  // namespace sweep::run
