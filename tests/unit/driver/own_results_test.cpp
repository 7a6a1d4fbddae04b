#include "orchestrator/driver/earlier_results.h"
#include "orchestrator/driver/planning.h"
#include "orchestrator/plan/planner.h"
#include "tests/support/model_trial.h"
#include "tests/support/must.h"
#include "tests/unit/driver/driver_fixture.h"

namespace sweep::driver {
namespace {

constexpr MeasurePlan kMeasure{2, 8, 1};

// A step takes a microsecond a token.
class ByTokens final : public predict::Predictor {
 public:
  Prediction predict(const Trial& t, const MeasurePlan&) const override {
    Prediction out;
    out.step_ms = 1e-3 * static_cast<double>(t.seq_len * t.micro_batch_size);
    out.seconds = 100 + *out.step_ms / 1e3 * 10;
    return out;
  }
};

Trial trial_of(i64 seq_len, i64 micro_batch) {
  Trial t;
  t.model = "tiny", t.hardware = "cpu", t.spec.layers = 1;
  t.seq_len = seq_len, t.micro_batch_size = t.global_batch_size = micro_batch;
  return t;
}

PlanEntry entry_of(Trial t) {
  PlanEntry out;
  out.id = trial_id(t), out.predicted = ByTokens().predict(t, kMeasure), out.trial = std::move(t);
  return out;
}

// A result that took so many times as long as predicted.
MeasuredTrial result_of(Trial t, double times) {
  return {trial_id(t), t, times * *ByTokens().predict(t, kMeasure).step_ms};
}

std::vector<MeasuredTrial> results(double times_short, double times_long) {
  std::vector<MeasuredTrial> out;
  for (const i64 micro_batch : {1, 2, 4, 8}) {
    out.push_back(result_of(trial_of(256, micro_batch), times_short));
    out.push_back(result_of(trial_of(4096, micro_batch), times_long));
  }
  return out;
}

TEST(OwnResults, AFactorCommonToAllResultsIsOfEveryTrial) {
  std::vector<PlanEntry> entries{entry_of(trial_of(1024, 2)), entry_of(trial_of(64, 16))};
  EXPECT_EQ(correct_times(entries, kMeasure, ByTokens(), results(3, 3)).size(), 1U);
  for (const PlanEntry& e : entries) {
    const double before = *ByTokens().predict(e.trial, kMeasure).step_ms;
    EXPECT_NEAR(*e.predicted.step_ms / before, 3, 0.15);
    EXPECT_NEAR(*e.predicted.seconds, 100 + *e.predicted.step_ms / 1e3 * 10, 1e-9);
  }
}

TEST(OwnResults, WhatAnAxisDoesIsLearned) {
  std::vector<PlanEntry> entries{entry_of(trial_of(256, 16)), entry_of(trial_of(4096, 16))};
  ASSERT_EQ(correct_times(entries, kMeasure, ByTokens(), results(1, 4)).size(), 1U);
  EXPECT_NEAR(*entries[0].predicted.step_ms / (1e-3 * 256 * 16), 1, 0.25);
  EXPECT_NEAR(*entries[1].predicted.step_ms / (1e-3 * 4096 * 16), 4, 0.8);
}

TEST(OwnResults, FourResultsCorrectNothing) {
  std::vector<PlanEntry> entries{entry_of(trial_of(1024, 2))};
  auto few = results(3, 3);
  few.resize(4);
  few.push_back(few.front());  // the same trial again, from another sweep
  EXPECT_TRUE(correct_times(entries, kMeasure, ByTokens(), few).empty());
  EXPECT_EQ(entries[0].predicted.step_ms, ByTokens().predict(entries[0].trial, kMeasure).step_ms);
}

TEST(OwnResults, OtherHardwareAndTrialsThatDoNotRunAreLeftAlone) {
  std::vector<PlanEntry> entries{entry_of(trial_of(1024, 2)), entry_of(trial_of(1024, 4))};
  entries[0].trial.hardware = "h100-sxm-80gb", entries[1].admitted = false;
  EXPECT_TRUE(correct_times(entries, kMeasure, ByTokens(), results(3, 3)).empty());
}

TEST(OwnResults, CommandsAreCorrectedByResultsOfTheirScript) {
  const auto command = [](Trial t, const char* script) {
    t.workload = Workload::kCommand;
    t.program = std::string(R"({"argv":["torchrun","--nproc-per-node=2",")") + script + R"(","--seed=1"]})";
    return t;
  };
  std::vector<MeasuredTrial> of_script;
  for (const auto& each : results(3, 3)) of_script.push_back(result_of(command(each.trial, "train.py"), 3));
  std::vector<PlanEntry> same{entry_of(command(trial_of(1024, 2), "train.py"))};
  std::vector<PlanEntry> other{entry_of(command(trial_of(1024, 2), "pretrain.py"))};
  EXPECT_EQ(correct_times(same, kMeasure, ByTokens(), of_script).size(), 1U);
  EXPECT_TRUE(correct_times(other, kMeasure, ByTokens(), of_script).empty());
  EXPECT_NEAR(*same[0].predicted.step_ms / (1e-3 * 1024 * 2), 3, 0.15);
}

TEST(OwnResults, ScriptsThatTheSameModulesStartAreApart) {
  for (const char* start :
       {R"("torchrun","-m","sweep_trial",)", R"("python","-m","torch.distributed.run",)"}) {
    const auto command = [&](Trial t, const char* script) {
      t.workload = Workload::kCommand;
      t.program = std::string(R"({"argv":[)") + start + '"' + script + R"("]})";
      return t;
    };
    std::vector<MeasuredTrial> of_script;
    for (const auto& each : results(3, 3)) of_script.push_back(result_of(command(each.trial, "train.py"), 3));
    std::vector<PlanEntry> other{entry_of(command(trial_of(1024, 2), "pretrain.py"))};
    EXPECT_TRUE(correct_times(other, kMeasure, ByTokens(), of_script).empty()) << start;
  }
}

using OwnResultsOf = DriverTest;

TEST_F(OwnResultsOf, ADatabaseAreThoseOfItsOtherSweeps) {
  const std::string db = dir_ / "folder" / "d.db";
  EXPECT_EQ(measured_trials(db, "")->size(), 0U) << "there is no such file";
  {
    auto driver = open("one");
    ASSERT_TRUE(driver.take_lease());
    ASSERT_TRUE(driver.sync_plan(plan(6), {0, 2, 1}));
    ASSERT_TRUE(run_all(driver));
  }
  const auto found = must(measured_trials(db, "two"));
  EXPECT_EQ(found.size(), 6U);
  for (const auto& each : found) EXPECT_GT(each.step_ms, 0);
  EXPECT_EQ(measured_trials(db, "one")->size(), 0U) << "its own results are learned while it runs";
}

}  // namespace
}  // namespace sweep::driver
