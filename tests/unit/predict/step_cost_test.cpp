// Step costs from a hardware profile: what each axis adds, and that a profile decides.
#include "orchestrator/predict/step_cost.h"

#include <gtest/gtest.h>

#include "bench_kernels/shape/count.h"
#include "orchestrator/predict/measured_hardware.h"
#include "orchestrator/predict/predictor.h"
#include "tests/support/model_trial.h"

namespace sweep::predict {
namespace {

shape::Hardware cpu() {
  return shape::find_hardware("cpu").value();
}

// Products at 10 GFLOP/s, copies at 10 GB/s, collectives of 20 us and 1 GB/s; launches cost nothing.
shape::HardwareProfile plain() {
  shape::HardwareProfile p;
  p.name = p.hardware = "cpu";
  p.products = {{"fp32", 0, 10e9, 1e300, 4, 0}};
  p.copies = {{1 << 20, (1 << 20) / 10e9}};
  for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"})
    p.links.push_back({kind, "shm", 2, 1, 20e-6, 1e9, 0});
  return p;
}

Trial trial() {
  Trial t;
  t.hardware = "cpu", t.gpus_per_node = 2;
  t.spec.layers = 4, t.spec.hidden_size = 256, t.spec.heads = t.spec.kv_heads = 4, t.spec.head_dim = 64;
  t.spec.intermediate_size = 1024, t.spec.vocab_size = 512;
  t.seq_len = 256, t.dp = 2, t.grad_accum = 4, t.global_batch_size = 8;
  return t;
}

StepCost cost(const Trial& t) {
  return step_cost(t, plain(), cpu());
}

TEST(StepCost, ProductsAreCountedOnceForwardAndTwiceBackward) {
  Trial t = trial();
  const double h = 256, layer = h * h * 4 + 3 * h * 1024, tokens = 256;
  const double products = 6 * tokens * (4 * layer + 512 * h) + 4 * 3.5 * 4 * tokens * 256 * h * 0.5;
  const StepCost c = cost(t);
  EXPECT_GT(c.compute_s, 4 * products / 10e9);
  EXPECT_LT(c.compute_s, 1.25 * 4 * products / 10e9);
  EXPECT_EQ(c.tensor_s + c.context_s + c.expert_s + c.offload_s + c.pipeline_s, 0);
  EXPECT_DOUBLE_EQ(c.step_s, c.compute_s + c.data_parallel_s + c.optimizer_s);
}

// The kernel of a processor takes a window as a mask: it makes all scores, of the other layers half of them.
TEST(StepCost, AWindowOnAProcessorSavesNoScores) {
  Trial t = trial(), narrow = t, wide = t, mixed = t;
  narrow.spec.sliding_window = 16, wide.spec.sliding_window = 256;
  mixed.spec.sliding_window = 16, mixed.spec.sliding_window_pattern = 2;
  const double half = 4 * 4 * 3.5 * 4 * 256 * 256 * 256 * 0.5 / 10e9;  // of four layers and micro-batches
  EXPECT_NEAR(cost(narrow).compute_s - cost(t).compute_s, half, 1e-3 * half);
  EXPECT_NEAR(cost(mixed).compute_s - cost(t).compute_s, half / 2, 1e-3 * half);
  EXPECT_DOUBLE_EQ(cost(wide).compute_s, cost(t).compute_s) << "no mask but the causal one";
}

TEST(StepCost, MicroBatchesAccumulateAndRecomputationRepeatsForward) {
  Trial t = trial(), again = t;
  again.recompute = Recompute::kFull;
  EXPECT_NEAR(cost(again).compute_s / cost(t).compute_s, 4.0 / 3, 0.05);
  Trial half = t;
  half.grad_accum = 2, half.global_batch_size = 4;
  EXPECT_NEAR(cost(t).compute_s / cost(half).compute_s, 2, 1e-9);
  EXPECT_DOUBLE_EQ(cost(t).data_parallel_s, cost(half).data_parallel_s);
}

TEST(StepCost, EachStrategyPaysForItsCollectives) {
  Trial t = trial();
  EXPECT_GT(cost(t).data_parallel_s, 4e6 * 4 / 1e9);
  t.dp = 1, t.tp = 2, t.global_batch_size = 4;
  const StepCost split = cost(t);
  EXPECT_GT(split.tensor_s,
            4 * 4 * 4 * (20e-6 + 256 * 256 * 4 / 1e9));  // four all-reduces a layer and micro-step
  EXPECT_EQ(split.data_parallel_s, 0);
  t.tp = 1, t.cp = 2;
  EXPECT_GT(cost(t).context_s, 0);
  Trial zero = trial(), three = zero;
  three.zero = 3;
  EXPECT_GT(cost(three).data_parallel_s, 2 * cost(zero).data_parallel_s);
  EXPECT_LT(cost(three).optimizer_s, 0.6 * cost(zero).optimizer_s);
}

TEST(StepCost, AShardSetIsGatheredInsideItsNode) {
  Trial whole = model_trial("mixtral-8x7b", "h100-sxm-80gb", 2);
  whole.zero = 3, whole.ep = 2;
  Trial sets = whole;
  sets.dp_shard = 8;
  const auto seconds = [](const Trial& t) {
    const shape::Hardware gpu = *shape::known_hardware(t.hardware);
    return step_cost(t, catalogue_profile(gpu), gpu).data_parallel_s;
  };
  EXPECT_LT(seconds(sets), 0.8 * seconds(whole)) << "nodes exchange a share of the gradients alone";
}

TEST(StepCost, WeightsAreGatheredAsOftenAsTheStepDoes) {
  Trial t = trial();
  t.zero = 3;
  Trial kept = t;
  kept.reshard_after_forward = false;
  const auto gathers_in_backward = [](const Trial& resharded, const Trial& same) {
    return cost(resharded).data_parallel_s - cost(same).data_parallel_s -
           4 * 6 * 20e-6;  // 4 layers and both ends
  };
  const double whole = 4 * shape::real(shape::parameter_count(t.spec)) * 4 / 2 / 1e9,
               table = 4 * 512 * 256 * 4 / 2 / 1e9;
  EXPECT_NEAR(gathers_in_backward(t, kept), whole, 1e-9);
  t.spec.tie_embeddings = kept.spec.tie_embeddings = true;
  EXPECT_NEAR(gathers_in_backward(t, kept), whole - 2 * table, 1e-9) << "the only table stays";
  kept.pp = 2;
  const double each = cost(kept).data_parallel_s;
  kept.schedule = Schedule::kGpipe;
  EXPECT_LT(cost(kept).data_parallel_s, 0.7 * each) << "once a step instead of once a micro-batch";
}

TEST(StepCost, AStageWaitsForItsFirstMicroBatchAsTheScheduleSays) {
  Trial t = trial();
  t.dp = 1, t.pp = 2, t.grad_accum = 8;
  const StepCost flat = cost(t);
  EXPECT_GT(flat.pipeline_s, 0.05 * flat.compute_s);
  t.schedule = Schedule::kInterleaved, t.vpp = 2;
  EXPECT_LT(cost(t).pipeline_s, flat.pipeline_s);
}

TEST(StepCost, ExpertsThatAreHotSlowTheirRankDown) {
  Trial t = trial();
  t.spec.family = "mixtral", t.spec.experts = 8, t.spec.experts_per_token = 2, t.ep = 2;
  const double even = cost(t).compute_s;
  t.routing = Routing::kSkewed, t.hot_percent = 90;
  const double skewed = cost(t).compute_s;
  EXPECT_GT(skewed, 1.3 * even);
  t.capacity_percent = 100;
  EXPECT_LT(cost(t).compute_s, skewed);
  t.capacity_percent = 0, t.hot_percent = 0;
  EXPECT_GT(cost(t).compute_s, even) << "the other rank has the experts that are chosen";
  t.routing = Routing::kBalanced;
  const StepCost all = cost(t);
  t.capacity_percent = 50;
  EXPECT_LT(cost(t).compute_s, all.compute_s);
  EXPECT_NEAR(cost(t).expert_s, all.expert_s - 4 * 4 * 4 * 256 * 256 * 4 / 2 / 1e9, 1e-9)
      << "half of the rows";
}

TEST(StepCost, WhatIsOffloadedTravels) {
  Trial t = trial();
  t.offload = Offload::kOptimizer;
  const double optimizer = cost(t).offload_s;
  EXPECT_GT(optimizer, 0);
  t.offload = Offload::kParameters;
  EXPECT_GT(cost(t).offload_s, optimizer);
}

TEST(StepCost, AnOptimizersUpdateFollowsFromWhatItReads) {
  Trial t = trial();
  const double fused = cost(t).optimizer_s;
  t.optimizer = OptimizerKind::kAdamw8bit;
  EXPECT_LT(cost(t).optimizer_s, fused);
  t.optimizer = OptimizerKind::kPagedAdamw;
  EXPECT_DOUBLE_EQ(cost(t).optimizer_s, fused) << "the same numbers, which come from the host";
  t.hardware = "a100-80gb", t.gpus_per_node = 2;
  shape::HardwareProfile gpu = plain();
  gpu.copies = {{1 << 20, (1 << 20) / 2000e9}};
  const StepCost paged = step_cost(t, gpu, *shape::known_hardware(t.hardware));
  EXPECT_GT(paged.offload_s, 5 * paged.optimizer_s) << "a host link is slower than a GPU's memory";
  t.zero = 1;
  EXPECT_LT(step_cost(t, gpu, *shape::known_hardware(t.hardware)).offload_s, paged.offload_s);
}

TEST(Roofline, Fp8RoundsGatheredWeights) {
  Trial whole = model_trial("llama3-8b", "h100-sxm-80gb");
  whole.precision = Precision::kFp8, whole.dp = 8, whole.zero = 2;
  Trial sharded = whole;
  sharded.zero = 3;
  const auto compute_s = [](const Trial& t) {
    const shape::Hardware hardware = *shape::known_hardware(t.hardware);
    return step_cost(t, catalogue_profile(hardware), hardware).compute_s;
  };
  EXPECT_DOUBLE_EQ(compute_s(sharded), compute_s(whole));
}

// A GPU that nobody calibrated: the plan's times still follow these axes.
TEST(Roofline, AdaptersOffloadingAndOptimizersChangeTheTimeOnAGpu) {
  Trial t = model_trial("llama3-8b", "h100-sxm-80gb");
  t.precision = Precision::kBf16Mixed, t.zero = 3;
  const auto ms = [](const Trial& of) { return *roofline().predict(of, MeasurePlan{0, 1, 1}).step_ms; };
  const double full = ms(t);
  Trial lora = t;
  lora.lora_rank = 8;
  EXPECT_LT(ms(lora), 0.85 * full);
  Trial quantized = lora;
  quantized.quantize_base = QuantizeBase::kNf4;
  EXPECT_GT(ms(quantized), ms(lora));
  double before = full;
  for (const Offload offload : {Offload::kOptimizer, Offload::kParameters, Offload::kDiskParameters}) {
    Trial away = t;
    away.offload = offload;
    EXPECT_GT(ms(away), before);
    before = ms(away);
  }
  Trial plain = t;
  plain.optimizer = OptimizerKind::kPlain;
  EXPECT_GT(ms(plain), full);
}

// Four layers of Llama 3 8B on one H100: how many times as long as in bf16 with all kernels fused. As rehearsed on phantom GPUs
// (scripts/axis_accuracy.py, docs/measurements/2026-11-28-predictions.md).
TEST(Roofline, KernelsAndStatesChangeTheTimeAsRehearsalsSay) {
  Trial base = model_trial("llama3-8b", "h100-sxm-80gb", 1, 1);
  base.spec.layers = 4;
  const auto ms = [](const Trial& of) { return *roofline().predict(of, MeasurePlan{0, 1, 1}).step_ms; };
  const auto near = [&](double rehearsed, auto change) {
    Trial t = base;
    change(t);
    EXPECT_NEAR(ms(t) / ms(base) / rehearsed, 1, 0.15) << rehearsed;
  };
  near(1.128, [](Trial& t) { t.precision = Precision::kBf16Master; });
  near(1.222, [](Trial& t) { t.precision = Precision::kBf16Mixed; });
  near(1.362, [](Trial& t) { t.precision = Precision::kBf16Amp; });
  near(0.989, [](Trial& t) { t.precision = Precision::kFp8; });
  near(13.15, [](Trial& t) { t.precision = Precision::kFp32; });
  near(1.092, [](Trial& t) { t.fused_kernels = FusedKernels::kNoNorm; });
  near(1.048, [](Trial& t) { t.fused_kernels = FusedKernels::kNoRope; });
  near(1.101, [](Trial& t) { t.fused_kernels = FusedKernels::kNoMlp; });
  near(1.037, [](Trial& t) { t.fused_kernels = FusedKernels::kNoLoss; });
  near(1.277, [](Trial& t) { t.fused_kernels = FusedKernels::kNone; });
  near(1.467, [](Trial& t) { t.attention = AttentionKind::kMath; });
  near(2.279, [](Trial& t) { t.precision = Precision::kBf16Amp, t.attention = AttentionKind::kMath; });
  near(1.016, [](Trial& t) { t.recompute = Recompute::kSelective; });
  near(1.256, [](Trial& t) { t.optimizer = OptimizerKind::kForeach; });
}

// A query sees w - w^2 / (2 S) keys on average. The cost alone is what the plan scales other trials by.
TEST(Roofline, AWindowLeavesAQueryTheKeysThatItsMaskDoes) {
  Trial t = model_trial("llama3-8b", "h100-sxm-80gb", 1, 1);
  t.seq_len = 65536;
  const shape::Hardware gpu = *shape::known_hardware(t.hardware);
  const auto plan = [](const Trial& of) { return *roofline().predict(of, MeasurePlan{0, 1, 1}).step_ms; };
  const auto cost_alone = [&](const Trial& of) {
    return step_cost(of, catalogue_profile(gpu), gpu).compute_s;
  };
  const auto with = [&](i64 window, AttentionKind kind) {
    Trial of = t;
    of.spec.sliding_window = window, of.attention = kind;
    return of;
  };
  const auto share = [&](i64 window, const auto& time) {
    const double none = time(with(1, t.attention)), all = time(t);
    return (time(with(window, t.attention)) - none) / (all - none);
  };
  const std::pair<i64, double> shares[] = {{65535, 1}, {32768, 0.75}, {4096, 31 / 256.0}};
  for (const auto& [window, expected] : shares) {
    EXPECT_NEAR(share(window, plan), expected, 1e-3);
    EXPECT_NEAR(share(window, cost_alone), expected, 1e-3);
  }
  EXPECT_DOUBLE_EQ(cost_alone(with(4096, AttentionKind::kMath)),
                   cost_alone(with(65536, AttentionKind::kMath)))
      << "all scores are made";
}

TEST(Roofline, ExchangesRunBesideThePassesOfAGpu) {
  Trial t = model_trial("llama3-8b", "h100-sxm-80gb");
  t.zero = 3;
  const auto ms = [](const Trial& of) { return *roofline().predict(of, MeasurePlan{0, 1, 1}).step_ms; };
  Trial alone = t, none_ahead = t;
  alone.dp = alone.gpus_per_node = alone.global_batch_size = 1;
  EXPECT_LT(ms(t), 1.1 * ms(alone));
  none_ahead.prefetch_forward = none_ahead.prefetch_backward = 0;
  EXPECT_GT(ms(none_ahead), 1.2 * ms(t));
  Trial after = t;
  after.backward_prefetch = BackwardPrefetch::kPost;
  EXPECT_GT(ms(after), 1.05 * ms(t));
  EXPECT_LT(ms(after), ms(none_ahead));
  after.prefetch_backward = 2;
  EXPECT_EQ(ms(after), ms(t)) << "one block's computation is beside each gather";
}

// The figures of hardware and the fitted part's step are kept from the last answer.
TEST(BeyondFitted, AnyFigureOfTheHardwareChangesTheAnswer) {
  Trial t = model_trial("llama3-8b", "h100-sxm-80gb", 2);
  t.tp = 8, t.cp = 2, t.dp = t.global_batch_size = 1, t.lora_rank = 16;
  const Trial fitted = fitted_part(t);
  const auto afresh = [&](const shape::Hardware& h) {
    const auto figures = catalogue_profile(h);
    return step_cost(t, figures, h, shape::kernel_choice(t)).step_s /
           step_cost(fitted, figures, h, {}).step_s;
  };
  const shape::Hardware base = *shape::known_hardware(t.hardware);
  const std::pair<const char*, void (*)(shape::Hardware&)> changes[] = {
      {"gpu", [](shape::Hardware& h) { h.gpu.clear(); }},
      {"linked GPUs", [](shape::Hardware& h) { h.linked_gpus = 72; }},
      {"memory", [](shape::Hardware& h) { h.memory_bandwidth *= 2; }},
      {"inside a node", [](shape::Hardware& h) { h.intra_node_bandwidth *= 2; }},
      {"between nodes", [](shape::Hardware& h) { h.inter_node_bandwidth *= 2; }},
      {"peaks", [](shape::Hardware& h) { h.peak_flops["bf16"] *= 2; }}};
  for (const auto& [what, change] : changes) {
    shape::Hardware other = base;
    change(other);
    ASSERT_NE(afresh(other), afresh(base)) << what;
    EXPECT_EQ(beyond_fitted(t, fitted, base), afresh(base)) << what;
    EXPECT_EQ(beyond_fitted(t, fitted, other), afresh(other)) << what;
  }
}

TEST(CalibratedPlan, UsesTheProfileOfTheHardwaresNameAndNoOther) {
  const MeasurePlan measure{0, 1, 1};
  shape::HardwareProfile p = plain();
  for (const i64 m : {32, 512})
    p.matmul.push_back({"fp32", m, 256, 256, 2.0 * static_cast<double>(m) * 256 * 256 / 1e9});
  p.fit();
  const double before = *roofline().predict(trial(), measure).step_ms;
  EXPECT_GT(*calibrated({p})->predict(trial(), measure).step_ms, 5 * before);  // twenty times slower products
  p.name = "another";
  EXPECT_EQ(*calibrated({p})->predict(trial(), measure).step_ms, before);
  EXPECT_EQ(profile_for(std::vector{p}, "cpu"), nullptr);
}

TEST(CalibratedPlan, ARecipesCommandTakesTheTimeOfItsTrainersProfile) {
  const MeasurePlan measure{0, 1, 1};
  Trial t = trial();
  t.hardware = "h100-sxm-80gb";
  const double step = *roofline().predict(t, measure).step_ms;
  EXPECT_EQ(*calibrated({}, "torchtitan")->predict(t, measure).step_ms, step) << "the built-in step";
  t.workload = Workload::kCommand;
  EXPECT_GT(*calibrated({}, "torchtitan")->predict(t, measure).step_ms, step)
      << "eager Python launches slowly";
  EXPECT_EQ(*calibrated({}, "absent")->predict(t, measure).step_ms, step);
}

TEST(MeasuredHardware, GivesPredictItsBandwidthsByNumberOfNodes) {
  shape::HardwareProfile p;
  p.copy_bandwidth = 2e12;
  p.links = {{"all_reduce", "nccl", 8, 1, 0, 400e9, 0},
             {"all_gather", "nccl", 2, 1, 0, 100e9, 0},
             {"all_gather", "nccl", 8, 1, 0, 300e9, 0},
             {"all_gather", "nccl", 16, 2, 0, 150e9, 0},
             {"all_reduce", "nccl", 16, 2, 0, 200e9, 0}};
  p.products = {{"bf16", 0, 5e14, 1e12, 2, 0}};
  shape::Hardware h = shape::find_hardware("h100-sxm-80gb").value();
  const double peak = h.peak_flops.at("bf16");
  TrainerProfile trainer;
  use_measured(p, h, trainer);
  EXPECT_EQ(h.memory_bandwidth, 2e12);
  EXPECT_EQ(h.intra_node_bandwidth, 300e9);
  EXPECT_EQ(h.inter_node_bandwidth, 150e9 / 8) << "each GPU has an eighth of what the ring had";
  EXPECT_EQ(h.ring_bandwidth(16, 2), 150e9);
  EXPECT_EQ(h.peak_flops.at("bf16"), peak);
  EXPECT_EQ(trainer.links.nodes, (std::vector<double>{1, 2}));
  EXPECT_EQ(trainer.links.all_reduce, (std::vector<double>{400e9, 200e9}));
}

}  // namespace
}  // namespace sweep::predict
