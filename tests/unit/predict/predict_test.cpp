#include "orchestrator/predict/predict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "orchestrator/plan/rules.h"
#include "orchestrator/predict/memory.h"
#include "orchestrator/predict/prediction_view.h"
#include "tests/unit/predict/predict_fixture.h"

namespace sweep::predict {
namespace {

using ::testing::HasSubstr;

constexpr double kGiB = 1024.0 * 1024 * 1024;

// 16 layers of 4 x 2048^2 + 3 x 2048 x 8192, and one table of 131072 x 2048.
constexpr double kOneB = 16 * 67108864.0 + 268435456.0;

TEST(PredictMemory, StatesFollowZero) {
  const auto all = predicted(laid_out("playbook-1b", 1, 8, 1, 1, 32, 1, 0)).memory.parts;
  EXPECT_DOUBLE_EQ(all.weights, 2 * kOneB);
  EXPECT_DOUBLE_EQ(all.gradients, 4 * kOneB);
  EXPECT_DOUBLE_EQ(all.optimizer, 12 * kOneB);
  const auto sharded = predicted(laid_out("playbook-1b", 1, 8, 1, 1, 32, 1, 1)).memory.parts;
  EXPECT_DOUBLE_EQ(sharded.optimizer, 12 * kOneB / 8);
  EXPECT_DOUBLE_EQ(sharded.gradients, all.gradients);
}

TEST(PredictMemory, ActivationsOfALayerAreWhatAutogradSaves) {
  // Per token: 10 tensors of 2048, 4 of 8192 in 16 bit, a statistic for each of 32 heads in 32 bit.
  const double token = 2 * (10 * 2048.0 + 4 * 8192) + 4 * 32;
  const auto parts = predicted(laid_out("playbook-1b", 1, 8, 1, 1, 32, 1, 0)).memory.parts;
  EXPECT_DOUBLE_EQ(parts.activations, 4096 * 16 * token);
  EXPECT_DOUBLE_EQ(parts.logits, 8.0 * 4096 * 131072);
  const auto halves = predicted(laid_out("playbook-1b", 1, 4, 2, 1, 32, 1, 0)).memory.parts;
  EXPECT_DOUBLE_EQ(halves.activations, parts.activations / 2);
}

TEST(PredictMemory, AnotherSequenceTakesWhatItTakesOnPhantomGpus) {
  // nanotron on phantom H100s allocates 35.6 GiB with one sequence and 46.2 GiB with two.
  const auto of = [](i64 sequences) {
    const auto parts =
        predicted(laid_out("playbook-1b", 1, 8, 1, 1, 32 / sequences, sequences, 0)).memory.parts;
    return parts.activations + parts.logits;
  };
  EXPECT_NEAR((of(2) - of(1)) / kGiB, 46.2 - 35.6, 0.15);
}

TEST(PredictMemory, OneTensorHoldsQueriesKeysAndValuesOfOneWidth) {
  // With fewer heads of keys and values each is a tensor of its own, and what was copied from is freed.
  const auto parts = predicted(laid_out("llama3-8b", 1, 8, 1, 1, 32, 1, 0)).memory.parts;
  const double token = 2 * (4 * 4096.0 + 2 * 4096 + 2 * 1024 + 4 * 14336) + 4 * 32;
  EXPECT_DOUBLE_EQ(parts.activations, 4096 * 32 * token);
}

TEST(PredictMemory, ReplicasWithoutZeroHaveASetOf16BitGradients) {
  const auto of = [](i64 nodes, i64 dp, i64 zero) {
    return predicted(laid_out("playbook-8b", nodes, dp, 1, 16, 128, 1, zero)).memory;
  };
  // The charted difference.
  EXPECT_NEAR((of(4, 2, 0).reserved - of(2, 1, 0).reserved) / kGiB, 62.8 - 60.4, 0.15);
  EXPECT_NEAR(of(4, 2, 0).need - of(2, 1, 0).need, of(2, 1, 0).parts.weights, 1e6);
}

TEST(PredictMemory, FreedTensorsWaitWhereThePipelineIsFullAndTheGpuIsSlower) {
  const auto held = [](i64 micros, i64 sequences) {
    const auto out = predicted(laid_out("playbook-1b", 2, 4, 2, 2, micros, sequences, 1));
    return out.memory.parts.held /
           (out.layout.batch.tokens * out.layout.model.hidden * out.layout.types.element);
  };
  EXPECT_GT(held(8, 8), held(2, 8) + 10);    // two micro-batches only fill two stages
  EXPECT_GT(held(8, 16), held(64, 1) + 10);  // the host is slower with one sequence
}

TEST(PredictMemory, TheFirstStageHoldsAMicroBatchForEachStage) {
  const double token = 2 * (10 * 4096.0 + 4 * 14336) + 4 * 32;
  EXPECT_DOUBLE_EQ(predicted(laid_out("playbook-8b", 1, 1, 2, 4, 256, 1, 0)).memory.parts.activations,
                   4096 * 9 * 4 * token / 2);
  EXPECT_DOUBLE_EQ(predicted(laid_out("playbook-8b", 1, 1, 2, 4, 2, 1, 0)).memory.parts.activations,
                   4096 * 9 * 2 * token / 2);
  auto every = laid_out("playbook-8b", 1, 1, 2, 4, 8, 1, 0);
  every.schedule = Schedule::kGpipe;
  EXPECT_DOUBLE_EQ(predicted(every).memory.parts.activations, 4096 * 9 * 8 * token / 2);
}

TEST(PredictMemory, RecomputationKeepsTheInputsOfLayers) {
  auto t = laid_out("playbook-8b", 1, 8, 1, 1, 32, 1, 3);
  t.recompute = Recompute::kFull;
  const double token = 2 * (10 * 4096.0 + 4 * 14336) + 4 * 32;
  EXPECT_DOUBLE_EQ(predicted(t).memory.parts.activations, 4096 * (32 * 2 * 4096.0 + token));
}

TEST(PredictMemory, MeasuredRowsComeOut) {
  // Rows of the Ultra-Scale Playbook, with the charted GB.
  const auto near = [](const Trial& t, double gb) {
    EXPECT_NEAR(predicted(t).memory.reserved / built_in("nanotron").facts.reported_unit / 1e9, gb, 0.08 * gb);
  };
  near(laid_out("playbook-1b", 1, 8, 1, 1, 16, 2, 0), 50.2);
  near(laid_out("playbook-8b", 1, 2, 1, 4, 128, 1, 1), 63.1);
  near(laid_out("playbook-8b", 16, 8, 8, 2, 16, 2, 1), 13.0);
}

TEST(PredictMemory, WhatNeedsMoreThanTheLimitDoesNotRun) {
  const auto fits = predicted(laid_out("playbook-8b", 2, 4, 4, 1, 16, 4, 1)).memory;
  EXPECT_LT(fits.need, fits.limit);
  const auto beyond = predicted(laid_out("playbook-8b", 1, 8, 1, 1, 32, 1, 0)).memory;
  EXPECT_GT(beyond.need, beyond.limit);
  EXPECT_GT(beyond.wanted, 80 * kGiB);
}

TEST(PredictTime, MeasuredRatesComeOut) {
  const auto near = [](const Trial& t, double rate) {
    EXPECT_NEAR(predicted(t).time.tokens_per_s_gpu, rate, 0.12 * rate);
  };
  near(laid_out("playbook-1b", 1, 8, 1, 1, 16, 2, 0), 40150);
  near(laid_out("playbook-8b", 2, 4, 4, 1, 16, 4, 1), 7290);
  near(laid_out("playbook-8b", 16, 8, 8, 2, 16, 2, 1), 1286);
}

TEST(PredictTime, ASmallMicroBatchIsBoundByTheHost) {
  const auto one = predicted(laid_out("playbook-1b", 1, 1, 8, 1, 256, 1, 0));
  EXPECT_GT(one.times.layer_host, one.times.layer_gpu);
  const auto many = predicted(laid_out("playbook-1b", 1, 1, 8, 1, 16, 16, 0));
  EXPECT_LT(many.times.layer_host, many.times.layer_gpu);
  EXPECT_LT(many.time.step_s, one.time.step_s / 3);
}

TEST(PredictTime, APipelineCostsItsFillAndDrain) {
  const auto t = predicted(laid_out("playbook-8b", 1, 1, 2, 4, 8, 1, 0)).time;
  EXPECT_GT(t.pipeline_s, t.compute_s / 8 * 2);
  EXPECT_LT(t.pipeline_s, t.compute_s / 8 * 3.05);  // and its messages
}

TEST(Refusal, NamesItsRule) {
  const auto rule = [](const Trial& t) {
    const auto r = predicted(t).refusal;
    return r ? r->rule : std::string();
  };
  EXPECT_EQ(rule(laid_out("playbook-1b", 2, 1, 1, 16, 64, 4, 0)), "empty_stage");
  EXPECT_EQ(rule(laid_out("playbook-8b", 2, 1, 1, 16, 8, 4, 0)), "pipeline");
  EXPECT_EQ(rule(laid_out("playbook-1b", 2, 4, 2, 2, 64, 1, 0)), "")
      << "what a cluster showed refuses nothing";
  EXPECT_EQ(rule(laid_out("llama3-8b", 2, 1, 16, 1, 64, 1, 0)), "divisibility");  // 8 key-value heads
  EXPECT_EQ(rule(laid_out("playbook-8b", 2, 4, 2, 2, 64, 1, 0)), "");
}

TEST(Refusal, OfALayoutThatNoProgramCanHave) {
  const auto rule = [](Trial t, const char* profile) {
    const auto refused = predicted(t, built_in(profile)).refusal;
    return refused ? refused->rule : std::string();
  };
  const auto of = [](auto change, const char* model = "llama3-8b") {
    Trial t = laid_out(model, 1, 8, 1, 1, 8, 1, 1);
    change(t);
    return t;
  };
  for (const char* profile : {"fsdp2", "megatron", "torchtitan", "deepspeed", "composer", "nanotron"}) {
    EXPECT_EQ(rule(of([](Trial&) {}), profile), "") << profile;
    EXPECT_EQ(rule(of([](Trial& t) { t.ep = 4; }), profile), "experts") << profile << ": a dense model";
    EXPECT_EQ(rule(of([](Trial& t) { t.ep = 3; }, "mixtral-8x7b"), profile), "divisibility") << profile;
    EXPECT_EQ(rule(of([](Trial& t) { t.ep = 4; }, "mixtral-8x7b"), profile), "") << profile;
    EXPECT_EQ(rule(of([](Trial& t) { t.dp_shard = 3; }), profile), "divisibility") << profile;
    EXPECT_EQ(rule(of([](Trial& t) { t.dp_shard = 4; }), profile), "") << profile;
    const auto chunks = [](i64 vpp) {
      return [vpp](Trial& t) { t.dp = 1, t.pp = 8, t.vpp = vpp, t.schedule = Schedule::kInterleaved; };
    };
    EXPECT_EQ(rule(of(chunks(5)), profile), "empty_stage") << profile << ": 40 chunks of 32 layers";
    EXPECT_EQ(rule(of(chunks(4)), profile), "") << profile;
  }
}

TEST(Refusal, ARuleIsItsTrainersOwn) {
  const auto refused = [](const char* profile) {
    return predicted(laid_out("playbook-8b", 2, 1, 1, 16, 8, 4, 0), built_in(profile)).refusal.has_value();
  };
  EXPECT_TRUE(refused("nanotron"));
  EXPECT_FALSE(refused("megatron")) << "1F1B runs with fewer micro-batches than stages";
  EXPECT_FALSE(refused("torchtitan"));
}

TEST(Effects, HoldForTheirHardwareAndModelSizesOnly) {
  const auto seen = [](const char* model, const char* hardware) {
    Trial t = laid_out(model, 2, 4, 2, 2, 64, 1, 0);
    t.hardware = hardware;
    Layout l;
    make_layout(t, built_in("nanotron"), l);
    return l.seen;
  };
  EXPECT_NEAR(seen("playbook-1b", "h100-sxm-80gb").fails, 0.95, 1e-9);
  EXPECT_EQ(seen("playbook-8b", "h100-sxm-80gb").fails, 0) << "its embeddings are untied";
  EXPECT_EQ(seen("playbook-1b", "a100-80gb").fails, 0);
  EXPECT_TRUE(seen("playbook-8b", "h100-sxm-80gb").slow_collectives);
  EXPECT_FALSE(seen("playbook-8b", "a100-80gb").slow_collectives);
  EXPECT_EQ(seen("playbook-8b", "h100-sxm-80gb").slow_messages, 1) << "zero 0 with 4 replicas";
  EXPECT_EQ(seen("llama3-70b", "h100-sxm-80gb").slow_messages, 0) << "a larger model";
}

TEST(Effects, SlowMessagesOfSeveralSequencesDependOnTheModel) {
  const auto share = [](const char* model, int sequences) {
    Layout l;
    make_layout(laid_out(model, 32, 16, 8, 2, 16 / sequences, sequences, 1), built_in("nanotron"), l);
    return l.seen.slow_messages;
  };
  EXPECT_NEAR(share("playbook-8b", 2), 0.9, 1e-9);
  EXPECT_NEAR(share("playbook-1b", 2), 0.2, 1e-9);
  EXPECT_EQ(share("playbook-8b", 1), 0);
}

TEST(SlowCollectives, HoldNoTensorsAndCostHostTime) {
  const auto few = predicted(laid_out("playbook-1b", 4, 2, 16, 1, 4, 32, 0));
  const auto one = predicted(laid_out("playbook-1b", 2, 1, 16, 1, 8, 32, 0));
  EXPECT_EQ(few.memory.parts.held, 0);
  EXPECT_GT(one.memory.parts.held, 10e9);
  EXPECT_GT(few.times.layer_host, 5 * one.times.layer_host);
  EXPECT_NEAR(few.memory.reserved / 1.073741824e9, 25.3, 0.1 * 25.3);  // measured
  EXPECT_NEAR(one.memory.reserved / 1.073741824e9, 48.8, 0.1 * 48.8);
}

Trial eager_trial(const char* model, i64 dp, Precision precision, i64 micro_batch, i64 micros = 1,
                  Recompute recompute = Recompute::kNone) {
  Trial t = laid_out(model, std::max<i64>(1, dp / 8), dp, 1, 1, micros, micro_batch, 3);
  t.gpus_per_node = std::min<i64>(8, dp);
  t.precision = precision, t.recompute = recompute;
  return t;
}

double peak_gb(const Trial& t, const TrainerProfile& p) {
  const TrialPrediction out = predicted(t, p);
  EXPECT_FALSE(out.refusal);
  return out.memory.wanted / 1e9;
}

TEST(Fsdp2Profile, IsWithinFivePercentOfTheTracker) {
  const auto near = [](double gb, const Trial& t, const TrainerProfile& p = built_in("fsdp2")) {
    EXPECT_NEAR(peak_gb(t, p) / gb, 1, 0.05) << gb;
  };
  const auto full = Recompute::kFull;
  const auto mixed = Precision::kBf16Mixed, half = Precision::kBf16;
  // The rows from which the profile's facts were chosen.
  near(41.50, eager_trial("llama3-8b", 8, mixed, 1));
  near(69.90, eager_trial("llama3-8b", 8, mixed, 2));
  near(20.54, eager_trial("llama3-8b", 8, mixed, 1, 1, full));
  near(27.99, eager_trial("llama3-8b", 8, mixed, 2, 1, full));
  near(45.51, eager_trial("llama3-8b", 8, mixed, 1, 2));
  near(35.48, eager_trial("llama3-8b", 8, half, 1));
  near(19.80, eager_trial("llama3.2-1b", 1, half, 1));
  near(56.96, eager_trial("llama3.2-1b", 1, half, 4));
  near(33.29, eager_trial("llama3.2-1b", 1, Precision::kFp32, 1));
  // Measured later.
  near(32.16, eager_trial("llama2-7b", 8, mixed, 1));
  near(21.23, eager_trial("llama2-7b", 8, mixed, 4, 1, full));
  near(8.79, eager_trial("llama2-7b", 8, half, 1, 1, full));
  near(7.01, eager_trial("mistral-7b", 16, half, 1, 4, full));
  near(30.55, eager_trial("playbook-1b", 4, mixed, 2));
  near(53.73, eager_trial("llama3.2-1b", 64, mixed, 8, 1, full));
  Trial kept = eager_trial("playbook-1b", 8, mixed, 1);
  kept.zero = 2;
  near(17.63, kept);
  // The review's own, extrapolated from fewer layers.
  Trial tensor = laid_out("llama3-8b", 1, 1, 4, 1, 1, 1, 0);
  tensor.gpus_per_node = 4, tensor.sp = true;
  near(24.20, tensor);
}

TEST(LightningProfile, PublishedTablesComeOut) {
  const auto gpt2 = [](i64 layers, i64 batch, Recompute recompute) {
    Trial t = eager_trial("gpt2-xl", 4, Precision::kFp16, batch, 1, recompute);
    t.spec.layers = layers, t.spec.tie_embeddings = false;
    t.hardware = "v100-16gb", t.seq_len = 128;
    return predicted(t, built_in("lightning")).memory;
  };
  const auto near = [&](double mib, i64 layers, i64 batch, Recompute recompute) {
    const auto m = gpt2(layers, batch, recompute);
    EXPECT_LE(m.need, m.limit);
    EXPECT_NEAR(m.reserved / 1024 / 1024 / mib, 1, 0.1) << layers << " layers, batch " << batch;
  };
  const auto none = Recompute::kNone, full = Recompute::kFull;
  near(9028, 48, 1, none), near(10510, 48, 2, none), near(12488, 48, 4, none), near(14736, 48, 7, none);
  near(14992, 48, 8, none);
  const auto nine = gpt2(48, 9, none);
  EXPECT_GT(nine.need, nine.limit);
  near(8458, 48, 8, full), near(8604, 48, 16, full), near(10188, 48, 32, full), near(11490, 48, 64, full);
  near(14340, 96, 8, full), near(14984, 96, 16, full), near(14992, 96, 32, full);
}

TEST(StepProfile, PredictsWhatThePlanDoes) {
  Trial t = laid_out("llama3-8b", 1, 2, 2, 2, 4, 1, 1);
  t.global_batch_size = 8;
  TrialPrediction out = predicted(t, built_in("sweep"));
  ASSERT_FALSE(out.refusal) << out.refusal->reason;
  EXPECT_DOUBLE_EQ(out.memory.wanted, estimate_memory(t).total());
  EXPECT_DOUBLE_EQ(out.memory.parts.reserved(), out.memory.wanted);
  t.tp = 3;
  out = predicted(t, built_in("sweep"));
  EXPECT_TRUE(out.refusal);
  EXPECT_EQ(out.memory.wanted, 0) << "rules come first: what is impossible is not counted";
}

TEST(PredictionView, ARefusedTrialOfOurOwnStepHasTimesAndNoBytes) {
  const auto& own = built_in("sweep");
  const auto refused = predicted(laid_out("playbook-1b", 1, 1, 7, 1, 1, 1, 0), own);
  ASSERT_TRUE(refused.refusal);
  nlohmann::json object;
  add_prediction(object, refused, own);
  EXPECT_EQ(object["fits"], false);
  EXPECT_EQ(object["sure"], true);
  EXPECT_TRUE(object["predicted_bytes"].is_null()) << "not predicted is never 0";
  EXPECT_GT(object["predicted_step_s"], 0);
  EXPECT_EQ(object.size(), prediction_columns().size());
  std::string line;
  append_prediction(line, refused, own);
  EXPECT_NE(line.find(",,,"), std::string::npos) << "nor in CSV: " << line;
}

TEST(PredictionView, CsvAndJsonSayTheSame) {
  const auto& profile = built_in("nanotron");
  const auto fitting = predicted(laid_out("playbook-1b", 1, 8, 1, 1, 32, 1, 0));
  nlohmann::json object;
  std::string line;
  add_prediction(object, fitting, profile);
  append_prediction(line, fitting, profile);
  std::istringstream cells(line);
  std::vector<std::string> all;
  for (std::string cell; std::getline(cells, cell, ',');) all.push_back(cell);
  const auto columns = prediction_columns();
  ASSERT_EQ(all.size(), columns.size()) << line;
  for (std::size_t i = 3; i < all.size(); ++i)
    EXPECT_NEAR(object[columns[i]].get<double>(), std::stod(all[i]),
                1e-3 * std::abs(std::stod(all[i])) + 1e-3)
        << columns[i];
}

TEST(PredictionView, WhatWasSeenToFailFitsAndIsNotSure) {
  auto shown = predicted(laid_out("playbook-1b", 1, 8, 1, 1, 32, 1, 0));
  shown.layout.seen = {}, shown.layout.seen.fails = 0.95, shown.layout.seen.failure = "hung";
  const Verdict verdict = verdict_on(shown, built_in("nanotron"));
  EXPECT_TRUE(verdict.fits);
  EXPECT_FALSE(verdict.sure);
  EXPECT_THAT(verdict.reason, HasSubstr("hung"));
}

TEST(Refusal, NanotronTrainsNoAdapters) {
  Trial t = laid_out("playbook-1b", 1, 8, 1, 1, 32, 1, 0);
  t.lora_rank = 8, t.model = "playbook-1b", t.global_batch_size = 8 * 32;
  const auto refused = predicted(t, built_in("nanotron")).refusal;
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->rule, "adapters");
  for (const char* name : {"megatron", "fsdp2", "torchtitan", "sweep"})
    EXPECT_FALSE(predicted(t, built_in(name)).refusal) << name;
}

}  // namespace
}  // namespace sweep::predict
