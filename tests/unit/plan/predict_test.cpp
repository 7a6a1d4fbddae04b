#include "orchestrator/plan/predict.h"

#include <gtest/gtest.h>

#include "orchestrator/plan/fit.h"

namespace sweep::plan {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

Trial trial(const char* model, i64 nodes, i64 dp, i64 tp, i64 pp, i64 micros, i64 micro_batch, i64 zero) {
  Trial t;
  t.spec = *shape::find_model(model);
  t.hardware = "h100-sxm-80gb", t.nodes = nodes, t.gpus_per_node = 8;
  t.dp = dp, t.tp = tp, t.pp = pp, t.grad_accum = micros, t.micro_batch_size = micro_batch, t.zero = zero;
  t.seq_len = 4096, t.precision = Precision::kBf16;
  return t;
}

struct Predicted {
  Layout layout;
  StageTimes times;
  MemoryPrediction memory;
  TimePrediction time;
};
Predicted predicted(const Trial& t, const TrainerProfile& p = nanotron_profile()) {
  Predicted out;
  const auto h = *shape::find_hardware(t.hardware);
  make_layout(t, p, out.layout);
  stage_times(out.layout, p, h, out.times);
  out.memory = predict_memory(out.layout, out.times, p, h);
  out.time = predict_time(out.layout, out.times, out.memory, p, h);
  return out;
}

// 16 layers of 4 x 2048^2 + 3 x 2048 x 8192, and one table of 131072 x 2048.
constexpr double kOneB = 16 * 67108864.0 + 268435456.0;

TEST(PredictMemory, StatesFollowZero) {
  const auto all = predicted(trial("playbook-1b", 1, 8, 1, 1, 32, 1, 0)).memory.parts;
  EXPECT_DOUBLE_EQ(all.weights, 2 * kOneB);
  EXPECT_DOUBLE_EQ(all.gradients, 4 * kOneB);
  EXPECT_DOUBLE_EQ(all.optimizer, 12 * kOneB);
  const auto sharded = predicted(trial("playbook-1b", 1, 8, 1, 1, 32, 1, 1)).memory.parts;
  EXPECT_DOUBLE_EQ(sharded.optimizer, 12 * kOneB / 8);
  EXPECT_DOUBLE_EQ(sharded.gradients, all.gradients);
}

TEST(PredictMemory, ActivationsOfALayerAreWhatAutogradSaves) {
  // Per token: 8 tensors of 2048, 4 of 8192 in 16 bit, a statistic for each of 32 heads in 32 bit.
  const double token = 2 * (8 * 2048.0 + 4 * 8192) + 4 * 32;
  const auto parts = predicted(trial("playbook-1b", 1, 8, 1, 1, 32, 1, 0)).memory.parts;
  EXPECT_DOUBLE_EQ(parts.activations, 4096 * 16 * token);
  EXPECT_DOUBLE_EQ(parts.logits, 10.0 * 4096 * 131072);
  const auto halves = predicted(trial("playbook-1b", 1, 4, 2, 1, 32, 1, 0)).memory.parts;
  EXPECT_DOUBLE_EQ(halves.activations, parts.activations / 2);
}

TEST(PredictMemory, TheFirstStageHoldsAMicroBatchForEachStage) {
  const double token = 2 * (8 * 4096.0 + 4 * 14336) + 4 * 32;
  EXPECT_DOUBLE_EQ(predicted(trial("playbook-8b", 1, 1, 2, 4, 256, 1, 0)).memory.parts.activations,
                   4096 * 9 * 4 * token / 2);
  EXPECT_DOUBLE_EQ(predicted(trial("playbook-8b", 1, 1, 2, 4, 2, 1, 0)).memory.parts.activations,
                   4096 * 9 * 2 * token / 2);
  auto every = trial("playbook-8b", 1, 1, 2, 4, 8, 1, 0);
  every.schedule = Schedule::kGpipe;
  EXPECT_DOUBLE_EQ(predicted(every).memory.parts.activations, 4096 * 9 * 8 * token / 2);
}

TEST(PredictMemory, RecomputationKeepsTheInputsOfLayers) {
  auto t = trial("playbook-8b", 1, 8, 1, 1, 32, 1, 3);
  t.recompute = Recompute::kFull;
  const double token = 2 * (8 * 4096.0 + 4 * 14336) + 4 * 32;
  EXPECT_DOUBLE_EQ(predicted(t).memory.parts.activations, 4096 * (32 * 2 * 4096.0 + token));
}

TEST(PredictMemory, MeasuredRowsComeOut) {
  // Of the Ultra-Scale Playbook, GB as charted.
  const auto near = [](const Trial& t, double gb) {
    EXPECT_NEAR(predicted(t).memory.reserved / nanotron_profile().facts.reported_unit / 1e9, gb, 0.08 * gb);
  };
  near(trial("playbook-1b", 1, 8, 1, 1, 16, 2, 0), 50.2);
  near(trial("playbook-8b", 1, 2, 1, 4, 128, 1, 1), 63.1);
  near(trial("playbook-8b", 16, 8, 8, 2, 16, 2, 1), 13.0);
}

TEST(PredictMemory, WhatNeedsMoreThanTheLimitDoesNotRun) {
  const auto fits = predicted(trial("playbook-8b", 2, 4, 4, 1, 16, 4, 1)).memory;
  EXPECT_LT(fits.need, fits.limit);
  const auto beyond = predicted(trial("playbook-8b", 1, 8, 1, 1, 32, 1, 0)).memory;
  EXPECT_GT(beyond.need, beyond.limit);
  EXPECT_GT(beyond.wanted, 80 * kGiB);
}

TEST(PredictTime, MeasuredRatesComeOut) {
  const auto near = [](const Trial& t, double rate) {
    EXPECT_NEAR(predicted(t).time.tokens_per_s_gpu, rate, 0.12 * rate);
  };
  near(trial("playbook-1b", 1, 8, 1, 1, 16, 2, 0), 40150);
  near(trial("playbook-8b", 2, 4, 4, 1, 16, 4, 1), 7290);
  near(trial("playbook-8b", 16, 8, 8, 2, 16, 2, 1), 1286);
}

TEST(PredictTime, ASmallMicroBatchIsBoundByTheHost) {
  const auto one = predicted(trial("playbook-1b", 1, 1, 8, 1, 256, 1, 0));
  EXPECT_GT(one.times.layer_host, one.times.layer_gpu);
  const auto many = predicted(trial("playbook-1b", 1, 1, 8, 1, 16, 16, 0));
  EXPECT_LT(many.times.layer_host, many.times.layer_gpu);
  EXPECT_LT(many.time.step_s, one.time.step_s / 3);
}

TEST(PredictTime, APipelineCostsItsFillAndDrain) {
  const auto t = predicted(trial("playbook-8b", 1, 1, 2, 4, 8, 1, 0)).time;
  EXPECT_GT(t.pipeline_s, t.compute_s / 8 * 2);
  EXPECT_LT(t.pipeline_s, t.compute_s / 8 * 3.01);
}

TEST(Refusal, NamesItsRule) {
  const auto rule = [](const Trial& t) {
    const auto r = refusal(predicted(t).layout, nanotron_profile());
    return r ? r->rule : std::string();
  };
  EXPECT_EQ(rule(trial("playbook-1b", 2, 1, 1, 16, 64, 4, 0)), "empty_stage");
  EXPECT_EQ(rule(trial("playbook-8b", 2, 1, 1, 16, 8, 4, 0)), "pipeline");
  EXPECT_EQ(rule(trial("playbook-1b", 2, 4, 2, 2, 64, 1, 0)), "tied_hang");
  EXPECT_EQ(rule(trial("llama3-8b", 2, 1, 16, 1, 64, 1, 0)), "divisibility");  // 8 key-value heads
  EXPECT_EQ(rule(trial("playbook-8b", 2, 4, 2, 2, 64, 1, 0)), "");
}

TEST(Profile, SurvivesItsJson) {
  const auto read = profile_from_json(to_json(nanotron_profile()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json(*read), to_json(nanotron_profile()));
}

TEST(Profile, AMissingParameterIsNamed) {
  std::string text = to_json(nanotron_profile());
  text.replace(text.find("half_width"), 4, "full");
  const auto read = profile_from_json(text);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("half_width"), std::string::npos);
}

// Rows made by a profile whose numbers are other than the start's.
std::vector<MeasuredRow> rows_of(const TrainerProfile& p) {
  std::vector<MeasuredRow> rows;
  for (const i64 tp : {1, 2, 4, 8})
    for (const i64 pp : {1, 2, 4})
      for (const i64 batch : {1, 2, 4})
        for (const i64 zero : {0, 1}) {
          const auto made = predicted(trial("playbook-1b", 8, 64 / tp / pp, tp, pp, 8, batch, zero), p);
          rows.push_back(
              {made.layout, true, made.memory.parts.reserved() / p.facts.reported_unit, made.time.step_s});
        }
  return rows;
}

TEST(Fit, FindsTheParametersThatMadeTheRows) {
  TrainerProfile other = nanotron_profile();
  other.time.matmul_share = 0.4, other.time.layer_launch_s = 6e-3, other.memory.gradient_copies = 2;
  const auto rows = rows_of(other);
  const auto h = *shape::find_hardware("h100-sxm-80gb");
  const auto fitted = fit_profile(nanotron_profile(), rows, h);
  ASSERT_TRUE(fitted);
  EXPECT_NEAR(fitted->time.matmul_share, 0.4, 0.03);
  EXPECT_NEAR(fitted->time.layer_launch_s, 6e-3, 2e-4);
  EXPECT_NEAR(fitted->memory.gradient_copies, 2, 0.1);
  EXPECT_LT(fitted->time_error, 0.05);
}

TEST(Fit, RefusesAHandfulOfRows) {
  const auto h = *shape::find_hardware("h100-sxm-80gb");
  EXPECT_FALSE(fit_profile(nanotron_profile(), {}, h));
}

}  // namespace
}  // namespace sweep::plan
