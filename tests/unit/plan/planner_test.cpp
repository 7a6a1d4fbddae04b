#include "orchestrator/plan/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench_kernels/shape/around_step.h"
#include "orchestrator/plan/rules.h"
#include "orchestrator/predict/memory.h"
#include "tests/support/model_trial.h"

namespace sweep::plan {
namespace {

using ::testing::HasSubstr;

Trial tiny(i64 ranks = 1) {
  Trial t = model_trial("tiny-llama", "cpu", 1, ranks);
  t.precision = Precision::kFp32;
  t.seq_len = 64;
  return t;
}

PlanEntry entry(std::string id, Trial t) {
  PlanEntry e;
  e.id = std::move(id);
  e.trial = std::move(t);
  return e;
}

PlanEntry decided(Trial t) {
  std::vector<PlanEntry> plan{entry("x", std::move(t))};
  decide(plan, {});
  return plan[0];
}

TEST(Planner, AdmitsWithAPrediction) {
  const PlanEntry e = decided(tiny());
  EXPECT_TRUE(e.admitted) << e.reason;
  EXPECT_GT(e.predicted.bytes.value_or(0), 0);
  EXPECT_GT(e.predicted.step_ms.value_or(0), 0);
  EXPECT_GT(e.predicted.seconds.value_or(0), *e.predicted.step_ms / 1e3);
}

TEST(Planner, ACommandIsPrunedByTheLeastStatesThatItsProgramMayChoose) {
  Trial t = model_trial("llama3-8b", "h100-sxm-80gb", 1, 8);
  t.workload = Workload::kCommand, t.precision = Precision::kBf16Mixed;
  const auto rule_of = [&](LeftToProgram left) {
    std::vector<PlanEntry> plan{entry("x", t)};
    decide(plan, {}, predict::roofline(), left);
    return plan[0].rule;
  };
  EXPECT_EQ(rule_of({}), "memory");       // ZeRO 0 on 8 ranks: 121.7 GiB of states
  EXPECT_EQ(rule_of({true, false}), "");  // ZeRO 3: 15 GiB
  t.workload = Workload::kStep;
  EXPECT_EQ(rule_of({true, true}), "memory") << "the built-in step takes the defaults";
}

TEST(Planner, UnsupportedTrialsStillHavePredictions) {
  Trial t = model_trial("llama3-8b", "h100-sxm-80gb");
  t.tp = 4;
  t.dp = t.global_batch_size = 2;
  t.packing = true;
  const PlanEntry e = decided(t);
  EXPECT_FALSE(e.admitted);
  EXPECT_EQ(e.verdict, Outcome::kUnsupported);
  EXPECT_EQ(e.rule, "unsupported");
  EXPECT_TRUE(e.predicted.bytes && e.predicted.step_ms && e.predicted.seconds);
}

TEST(Planner, PrecisionTheHardwareLacksHasBytesButNoTime) {
  const PlanEntry e = decided(model_trial("gpt2", "v100-16gb"));
  EXPECT_FALSE(e.admitted);
  EXPECT_EQ(e.rule, "positions");  // 4096 > 1024
  Trial t = model_trial("gpt2", "v100-16gb");
  t.seq_len = 1024;
  const PlanEntry v100 = decided(t);
  EXPECT_EQ(v100.verdict, Outcome::kUnsupported);
  EXPECT_EQ(v100.rule, "precision");
  EXPECT_TRUE(v100.predicted.bytes.has_value());
  EXPECT_FALSE(v100.predicted.step_ms.has_value());
}

TEST(Planner, PrunesWhatTheModelStatesAloneExceed) {
  const PlanEntry e = decided(model_trial("llama3-70b", "h100-sxm-80gb"));  // 8 bytes a parameter: 525.7 GiB
  EXPECT_FALSE(e.admitted);
  EXPECT_EQ(e.verdict, Outcome::kPruned);
  EXPECT_EQ(e.rule, "memory");
  EXPECT_THAT(e.reason, HasSubstr("weights 131.4 GiB, gradients 131.4 GiB, optimizer 262.8 GiB"));
  EXPECT_THAT(e.reason, HasSubstr("budget 75.7 GiB"));
}

TEST(Planner, CloseCallsRunSoThatTheyCanOom) {
  Trial t = tiny();
  const double states = predict::estimate_memory(t).states();
  t.memory_cap_bytes = static_cast<i64>(states);  // leaves nothing for activations: sure to OOM, but run
  EXPECT_TRUE(decided(t).admitted);
  t.memory_cap_bytes = static_cast<i64>(states) - 512;
  EXPECT_EQ(decided(t).rule, "memory");
}

TEST(Planner, ImpossibleTrialsHaveNoPrediction) {
  Trial t = model_trial("llama3-8b", "h100-sxm-80gb");
  t.dp = 7;
  EXPECT_FALSE(decided(t).predicted.bytes.has_value());
}

TEST(Planner, KeepsWhatTheGridHasPruned) {
  PlanEntry e = entry("a", tiny());
  e.admitted = false;
  e.rule = "where";
  e.reason = "dp <= 2 is false";
  std::vector<PlanEntry> plan{e};
  decide(plan, {});
  EXPECT_EQ(plan[0].rule, "where");
  EXPECT_EQ(plan[0].reason, "dp <= 2 is false");
}

TEST(Planner, GraphsNeedTheStepsInWhichTheyAreCaptured) {
  Trial graphs = model_trial("gpt2", "a100-80gb");
  graphs.seq_len = 1024;
  const Trial eager = graphs;
  graphs.cuda_graph = true;
  for (const i64 warmups : {0, 1, 2}) {
    std::vector<PlanEntry> plan{entry("graphs", graphs), entry("eager", eager)};
    MeasurePlan measure;
    measure.warmup_steps = warmups;
    decide(plan, measure);
    EXPECT_EQ(plan[0].admitted, warmups == 2) << plan[0].reason;
    EXPECT_TRUE(plan[1].admitted) << plan[1].reason;
    if (plan[0].admitted) continue;
    EXPECT_EQ(plan[0].rule, "cuda_graph");
    EXPECT_EQ(plan[0].verdict, Outcome::kUnsupported);
    EXPECT_THAT(plan[0].reason, HasSubstr("warmup_steps"));
  }
}

TEST(Planner, BestPredictedOfEachQuestionFirstWithinOnePlacement) {
  Trial cheap = tiny(), costly = tiny(), wide = tiny(2), cheapest_wide = tiny(2);
  costly.seq_len = 4096;
  wide.seq_len = 128;
  cheapest_wide.seq_len = 1;
  std::vector<PlanEntry> plan{
      entry("d", wide),  entry("c", costly),        entry("b", cheap),
      entry("a", cheap), entry("e", cheapest_wide), entry("0", model_trial("llama3-70b", "h100-sxm-80gb"))};
  decide(plan, {});
  std::vector<std::string> ids(plan.size());
  for (const PlanEntry& e : plan) ids[static_cast<std::size_t>(e.order)] = e.id;
  EXPECT_THAT(ids, ::testing::ElementsAre("b", "c", "a", "e", "d", "0")) << "ties as the grid lists them";
}

TEST(Planner, PrunesBeyondThisMachine) {
  std::vector<PlanEntry> plan{entry("slots", tiny(8)),
                              entry("fits", tiny(2)),
                              entry("gpus", model_trial("gpt2", "a100-80gb")),
                              entry("nodes", model_trial("gpt2", "a100-80gb", 2)),
                              entry("memory", model_trial("llama3-8b", "cpu", 1, 2)),
                              entry("share", model_trial("gpt2", "a100-80gb"))};
  plan[5].trial.backend = CommBackend::kGloo;
  for (PlanEntry& e : plan) e.trial.seq_len = 512;
  decide(plan, {});
  prune_beyond(plan, Resources{4, 1, i64{16} << 30});
  EXPECT_THAT(plan[0].reason, HasSubstr("needs 8 CPU ranks at once, this machine offers 4"));
  EXPECT_TRUE(plan[1].admitted);
  EXPECT_THAT(plan[2].reason, HasSubstr("needs 8 GPUs, this machine has 1"));
  EXPECT_THAT(plan[3].reason, HasSubstr("one machine"));
  EXPECT_THAT(plan[4].reason, HasSubstr("model states of 2 ranks"));
  EXPECT_TRUE(plan[5].admitted) << "ranks over Gloo share a GPU: " << plan[5].reason;
  for (std::size_t i : {0u, 2u, 3u, 4u}) EXPECT_EQ(plan[i].rule, "resources");
}

TEST(Deadlines, HaveFloors) {
  Prediction p;
  p.step_ms = 1;
  const Deadlines d = deadlines_for(p, model_trial("gpt2", "h200-141gb"), MeasurePlan{3, 10, 1});
  EXPECT_DOUBLE_EQ(d.startup_s, 120);
  EXPECT_DOUBLE_EQ(d.first_step_s, 120);
  EXPECT_DOUBLE_EQ(d.step_s, 30);
  EXPECT_DOUBLE_EQ(d.total_s, 120 + 120 + 30 + 13);
}

TEST(Deadlines, GrowWithThePrediction) {
  Prediction p;
  p.step_ms = 10'000;
  p.bytes = i64{1} << 30;
  const Deadlines d = deadlines_for(p, tiny(), MeasurePlan{1, 4, 2});
  EXPECT_GT(d.startup_s, 120);
  EXPECT_DOUBLE_EQ(d.first_step_s, 200);
  EXPECT_DOUBLE_EQ(d.step_s, 200);
  EXPECT_DOUBLE_EQ(d.total_s, d.startup_s + 400 + 10 * 200);
}

TEST(Deadlines, ACheckpointHasTheTimeOfASlowDisk) {
  Trial t = model_trial("gpt2", "h200-141gb");
  const Deadlines without = deadlines_for({}, t, {});
  t.checkpoint = CheckpointKind::kFull, t.precision = Precision::kBf16Master;
  EXPECT_GT(deadlines_for({}, t, {}).around_s, without.step_s);
  EXPECT_DOUBLE_EQ(deadlines_for({}, t, {}).total_s, without.total_s + deadlines_for({}, t, {}).around_s);
}

// Ranks that have no head wait for the metrics of all sequences.
TEST(Deadlines, TextMetricsHaveTheTimeOfTheirSquare) {
  Trial t = model_trial("gpt2", "h200-141gb");
  t.seq_len = 1000, t.eval_batch_size = 50, t.eval_batches = 10;
  const Deadlines without = deadlines_for({}, t, {});
  t.eval_metrics = EvalMetrics::kNgram;
  const Deadlines with = deadlines_for({}, t, {});
  EXPECT_DOUBLE_EQ(with.around_s, without.around_s + 10) << "500 million pairs at 50 million a second";
  EXPECT_DOUBLE_EQ(with.total_s, without.total_s + 10);
  t.seq_len = 2000;
  EXPECT_DOUBLE_EQ(deadlines_for({}, t, {}).around_s, without.around_s + 40);
}

TEST(Deadlines, DataHasTheTimeOfASlowTokeniser) {
  Prediction p;
  p.step_ms = 2000;
  Trial t = model_trial("gpt2", "h200-141gb");
  t.seq_len = 999, t.micro_batch_size = 10, t.grad_accum = 100;
  const Deadlines without = deadlines_for(p, t, {});
  t.data = DataSource::kText;
  const Deadlines with = deadlines_for(p, t, {});
  EXPECT_DOUBLE_EQ(with.step_s, without.step_s + 10) << "a million tokens at 100,000 a second";
  EXPECT_DOUBLE_EQ(with.startup_s, without.startup_s + 10);
}

TEST(Planner, ThisMachineMustHoldAGatheredCheckpoint) {
  Trial t = model_trial("gpt2", "h200-141gb");
  t.checkpoint = CheckpointKind::kFull, t.seq_len = t.spec.max_positions;
  for (const i64 missing : {0, 1}) {
    std::vector<PlanEntry> plan{entry("x", t)};
    prune_beyond(plan, Resources{4, t.gpus_per_node, shape::checkpoint_bytes(t) - missing});
    EXPECT_EQ(plan[0].rule, missing ? "resources" : "") << plan[0].reason;
  }
}

TEST(Deadlines, WithoutAPredictionAreGenerous) {
  const Deadlines d = deadlines_for({}, tiny(), {});
  EXPECT_GE(d.step_s, 300);
  EXPECT_GT(d.total_s, d.startup_s + d.first_step_s + d.step_s);
}

}  // namespace
}  // namespace sweep::plan
