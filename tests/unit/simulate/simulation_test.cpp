#include "orchestrator/simulate/simulation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "schema/codec.h"
#include "tests/support/error_matchers.h"
#include "tests/support/temporary_folder.h"

namespace sweep::simulate {
namespace {

class SimulationTest : public ::testing::Test {
 protected:
  static std::vector<PlanEntry> plan(i64 trials) {
    std::vector<PlanEntry> out;
    for (i64 i = 0; i < trials; ++i) {
      PlanEntry e;
      e.trial.nodes = i64{1} << (i % 3);
      e.trial.gpus_per_node = 2;
      e.trial.dp = e.trial.nodes * e.trial.gpus_per_node;
      e.trial.model = "tiny";
      e.trial.hardware = "h100-sxm-80gb";
      e.trial.spec.layers = 1;
      e.trial.seq_len = 64 + i;
      e.trial.global_batch_size = e.trial.dp;
      e.predicted.step_ms = 500;
      e.predicted.seconds = 20 + 0.5 * 13;
      e.id = trial_id(e.trial);
      e.order = i;
      out.push_back(e);
    }
    return out;
  }

  Expected<Forecast> run(i64 trials, const Assumptions& assumed) {
    const auto folder = dir_ / std::to_string(++runs_);
    std::filesystem::create_directories(folder);
    return simulate(plan(trials), MeasurePlan{}, assumed, folder);
  }

  static i64 count(const Forecast& f, Outcome wanted) {
    for (const auto& [outcome, n] : f.outcomes)
      if (outcome == wanted) return n;
    return 0;
  }

  static Assumptions small() {
    Assumptions a;
    a.nodes = 16, a.spares = 2, a.jobs = 4, a.job_nodes = 4, a.seed = 7;
    return a;
  }

  const TemporaryFolder dir_;
  int runs_ = 0;
};

TEST_F(SimulationTest, EndsAtTheLimitOfGpuHours) {
  Assumptions a = small();
  const auto all = run(100, a);
  a.gpu_hours = 0.5;
  const auto limited = run(100, a);
  ASSERT_TRUE(all && limited);
  EXPECT_EQ(all->pending, 0);
  EXPECT_NE(limited->end, "");
  EXPECT_GT(limited->pending, 0);
  EXPECT_LT(limited->makespan_s, all->makespan_s);
  EXPECT_EQ(nlohmann::json::parse(to_json(*limited))["assumptions"]["gpu_hours"], 0.5);
}

TEST_F(SimulationTest, NoShareOfTheTimeIsBelowNothing) {
  Assumptions a = small();
  a.oom_percent = 100;
  const auto f = must(run(50, a));
  EXPECT_FALSE(std::signbit(f.account.time.trials)) << f.account.time.trials;
}

TEST_F(SimulationTest, EveryTrialIsAnsweredAndAllNodeTimeIsAccountedFor) {
  Assumptions a = small();
  a.node_mtbf_h = 2, a.preempted_per_h = 1, a.crash_percent = 5, a.hang_percent = 2;
  const auto f = must(run(400, a));
  EXPECT_EQ(f.end, "");
  EXPECT_EQ(f.trials, 400);
  EXPECT_EQ(f.pending, 0);
  EXPECT_GT(count(f, Outcome::kOk), 350);
  EXPECT_GT(count(f, Outcome::kOom), 0);
  EXPECT_EQ(count(f, Outcome::kInvalid), 0);
  const auto& account = f.account;
  EXPECT_GT(account.nodes_broken, 0);
  EXPECT_GT(account.preempted, 0);
  EXPECT_GT(account.attempts, 400) << "crashes are tried again";
  EXPECT_GT(account.time.lost, 0);
  EXPECT_GE(account.time.idle, 0);
  EXPECT_LE(account.time.held(), f.available());
}

TEST_F(SimulationTest, WithoutFailuresOrSpreadTheTimeOfTrialsIsWhatWasPredicted) {
  Assumptions a = small();
  a.node_mtbf_h = 0, a.preempted_per_h = 0, a.oom_percent = a.crash_percent = a.hang_percent = 0,
  a.spread = 0;
  const auto f = must(run(90, a));
  EXPECT_EQ(count(f, Outcome::kOk), 90);
  EXPECT_EQ(f.account.attempts, 90);
  EXPECT_NEAR(f.account.time.lost, 0, 1e-6);
  EXPECT_NEAR(f.account.time.trials, 30 * (1 + 2 + 4) * 6.5, 1e-3);
}

TEST_F(SimulationTest, TheSameSeedIsTheSameSimulationAndAnotherIsNot) {
  Assumptions a = small();
  a.node_mtbf_h = 20;
  const auto first = run(60, a), again = run(60, a);
  a.seed = 8;
  const auto other = run(60, a);
  ASSERT_TRUE(first && again && other);
  EXPECT_EQ(first->makespan_s, again->makespan_s);
  EXPECT_EQ(first->account.time.lost, again->account.time.lost);
  EXPECT_NE(first->makespan_s, other->makespan_s);
}

TEST_F(SimulationTest, NodesThatBreakAllTheTimeOpenTheCircuitBreaker) {
  Assumptions a = small();
  a.node_mtbf_h = 0.005, a.repair_h = 0.001;
  const auto f = must(run(50, a));
  EXPECT_NE(f.end.find("in a row were lost"), std::string::npos) << f.end;
  EXPECT_GT(f.pending, 0);
}

TEST_F(SimulationTest, AllocationsTooShortForEveryTrialEndTheRun) {
  Assumptions a = small();
  a.job_s = 10;  // agents take most of it
  const auto f = must(run(12, a));
  EXPECT_NE(f.end, "");
  EXPECT_EQ(f.pending, 12);
  EXPECT_EQ(f.account.attempts, 0);
}

TEST_F(SimulationTest, AnIdleClusterIsUsedWhileTrialsWait) {
  for (const char* folder : {"spread", "alone"}) std::filesystem::create_directory(dir_ / folder);
  Assumptions a;
  a.nodes = 4, a.spares = 0, a.jobs = 4, a.job_nodes = 4, a.queue_s = 0, a.agents_s = 1, a.node_mtbf_h = 0;
  a.preempted_per_h = a.oom_percent = a.crash_percent = a.hang_percent = a.spread = 0;
  auto one_node = plan(60);
  for (auto& each : one_node) {
    each.trial.nodes = 1, each.trial.dp = each.trial.global_batch_size = each.trial.gpus_per_node;
    each.id = trial_id(each.trial);
  }
  const auto spread = simulate(one_node, MeasurePlan{}, a, dir_ / "spread");
  a.spread_s = 0;
  const auto alone = simulate(one_node, MeasurePlan{}, a, dir_ / "alone");
  ASSERT_TRUE(spread && alone);
  EXPECT_EQ(count(*spread, Outcome::kOk), 60);
  EXPECT_EQ(alone->account.allocations, 1);
  EXPECT_EQ(spread->account.allocations, 4);
  EXPECT_LT(spread->makespan_s, 0.4 * alone->makespan_s);
}

TEST_F(SimulationTest, TheReportNamesTheSharesInTextAndJson) {
  const auto f = must(run(30, small()));
  const auto text = to_text(f);
  for (const char* word : {"makespan", "efficiency", "trials", "start-up", "lost", "idle", "queue", "seed 7"})
    EXPECT_NE(text.find(word), std::string::npos) << word << " in\n" << text;
  const auto json = must(parse_json(to_json(f)));
  double sum = 0;
  for (const auto& [name, node_s] : json.at("node_s").items()) sum += node_s.get<double>();
  EXPECT_NEAR(sum, json.at("available_node_s").get<double>(), 1e-3);
}

TEST_F(SimulationTest, TrialsWhoseTimeNothingPredictsAreCounted) {
  auto entries = plan(3);
  entries[0].predicted = {}, entries[1].predicted = {};
  entries[1].admitted = false, entries[1].verdict = Outcome::kPruned, entries[1].rule = "where";
  const auto f = must(simulate(entries, MeasurePlan{}, small(), dir_));
  EXPECT_EQ(f.unpredicted, 1);
  const auto json = parse_json(to_json(f)).value();
  EXPECT_EQ(json.at("unpredicted"), 1);
  EXPECT_EQ(json.at("assumptions").at("unpredicted_s"), 80);
  EXPECT_NE(to_text(f).find("80 s"), std::string::npos);
}

TEST_F(SimulationTest, TimesThatNoClockCountsNeverCome) {
  Assumptions far = small();
  far.node_mtbf_h = 1e9;
  const auto unbroken = must(run(30, far));
  EXPECT_EQ(unbroken.account.nodes_broken, 0);
  EXPECT_GT(unbroken.makespan_s, 0);
  Assumptions broken = small();
  broken.node_mtbf_h = 1, broken.repair_h = 1e7;
  const auto kept = must(run(90, broken));
  EXPECT_GT(kept.account.nodes_broken, 0);
  EXPECT_LE(kept.account.nodes_broken, broken.nodes + broken.spares) << "none is back";
}

TEST_F(SimulationTest, ATrialThatOnlyCrashesHasNoAnswer) {
  Assumptions a = small();
  const auto some = run(9, a);
  a.crash_percent = 100, a.oom_percent = a.hang_percent = 0;
  const auto none = run(9, a);
  ASSERT_TRUE(some && none);
  EXPECT_TRUE(some->every_trial_has_an_answer());
  EXPECT_EQ(none->end, "");
  EXPECT_FALSE(none->every_trial_has_an_answer());
}

}  // namespace
}  // namespace sweep::simulate
