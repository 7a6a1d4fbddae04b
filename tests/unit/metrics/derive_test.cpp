// Numbers worked out by hand; what must stay absent; which reduction over ranks and steps each number is.
#include "orchestrator/metrics/derive.h"

#include <gtest/gtest.h>

#include <limits>

#include "orchestrator/metrics/steps.h"
#include "tests/unit/metrics/records_by_hand.h"

namespace sweep::metrics {
namespace {

TEST(Derive, StepTimeIsTheMedianOverStepsOfTheMaximumOverRanks) {
  const std::vector<RankRecord> records{rank(0, {sample(0, 10), sample(1, 30), sample(2, 10)}),
                                        rank(1, {sample(0, 20), sample(1, 10), sample(2, 60)})};
  const Metrics m = derive(cpu_trial(2), records, nullptr);
  EXPECT_DOUBLE_EQ(*m.step_ms, 30);  // maxima 20, 30, 60
  EXPECT_DOUBLE_EQ(*m.step_ms_iqr, 20);
  EXPECT_DOUBLE_EQ(*m.forward_ms, 7.5);
  EXPECT_DOUBLE_EQ(*m.backward_ms, 15);
  EXPECT_DOUBLE_EQ(*m.optimizer_ms, 3.75);
  EXPECT_EQ(*m.timed_steps, 3);
  EXPECT_FALSE(m.step_ms_ci_low.has_value());
  EXPECT_EQ(*m.formula_version, kFormulaVersion);
}

TEST(Derive, WarmUpIsNeverAveragedIn) {
  const std::vector<RankRecord> records{
      rank(0, {sample(0, 9000, true), sample(1, 8000, true), sample(2, 10), sample(3, 12)})};
  const Metrics m = derive(cpu_trial(), records, nullptr);
  EXPECT_DOUBLE_EQ(*m.step_ms, 11);
  EXPECT_EQ(*m.timed_steps, 2);
  EXPECT_DOUBLE_EQ(*m.loss_first, 5.0);  // the first step of all is a warm-up step
  EXPECT_DOUBLE_EQ(*m.loss_last, 3.5);
}

TEST(Derive, RepeatsArePooledAndKeptApart) {
  std::vector<StepSample> samples;
  for (i64 repeat = 0; repeat < 2; ++repeat)
    for (i64 step = 0; step < 3; ++step) {
      samples.push_back(sample(step, static_cast<double>(10 * (repeat * 3 + step + 1))));
      samples.back().repeat = repeat;
    }
  const Metrics m = derive(cpu_trial(), std::vector{rank(0, samples)}, nullptr);
  EXPECT_EQ(*m.timed_steps, 6);
  EXPECT_DOUBLE_EQ(*m.step_ms, 35);
  EXPECT_DOUBLE_EQ(*m.step_ms_ci_low, 10);
  EXPECT_DOUBLE_EQ(*m.step_ms_ci_high, 60);
}

TEST(Derive, ThroughputByHand) {
  const Metrics m =
      derive(cpu_trial(2), std::vector{rank(0, {sample(0, 100)}), rank(1, {sample(0, 200)})}, nullptr);
  EXPECT_DOUBLE_EQ(*m.tokens_per_s, 12 * 50 / 0.2);
  EXPECT_DOUBLE_EQ(*m.tokens_per_s_gpu, 1500);
  EXPECT_DOUBLE_EQ(*m.mt_per_hour, 3000 * 3600 / 1e6);
}

TEST(Derive, CpuHasNoPeakSoNoMfuAndNoPriceSoNoCost) {
  const Metrics m = derive(cpu_trial(), std::vector{rank(0, {sample(0, 10)})}, nullptr);
  EXPECT_TRUE(m.tflops_gpu.has_value());
  EXPECT_FALSE(m.peak_flops || m.mfu || m.hfu || m.mfu_fwd_bwd || m.cost_per_mt);
}

TEST(Derive, MfuByHand) {
  const Metrics m = derive(gpu_trial("llama3-8b", "h100-sxm-80gb"), eight_ranks(500), nullptr);
  // Multiplied: 32 x (4096 x (4096 + 2 x 1024) + 4096^2 + 3 x 4096 x 14336) + 128256 x 4096.
  const double multiplied = 32.0 * (4096.0 * 6144 + 4096.0 * 4096 + 3.0 * 4096 * 14336) + 128256.0 * 4096;
  const double flops_per_token = 6 * multiplied + 12.0 * 32 * 4096 * 4096;
  EXPECT_NEAR(*m.mfu, flops_per_token * 4096 / 0.5 / 989.4e12, 1e-12);
  EXPECT_DOUBLE_EQ(*m.hfu, *m.mfu);
  EXPECT_DOUBLE_EQ(*m.peak_flops, 989.4e12);
  EXPECT_NEAR(*m.tflops_gpu, *m.mfu * 989.4, 1e-9);
  // LLMForge's form: 6 x 4096 x 8030261248 over 375 ms of forward and backward.
  EXPECT_NEAR(*m.mfu_fwd_bwd, 6 * 4096 * 8030261248.0 / 0.375 / 989.4e12, 1e-12);
  EXPECT_DOUBLE_EQ(*m.cost_per_mt, 55.04 / (8 * 4096 / 0.5 * 3600 / 1e6));
}

TEST(Derive, MfuDoesNotDependOnHowTheModelIsSplit) {
  Trial whole = gpu_trial("playbook-1b", "h100-sxm-80gb"), split = whole;
  split.dp = 2;
  split.pp = 4;
  split.grad_accum = 4;
  EXPECT_DOUBLE_EQ(*derive(whole, eight_ranks(500), nullptr).mfu,
                   *derive(split, eight_ranks(500), nullptr).mfu);
  EXPECT_FALSE(derive(split, eight_ranks(500), nullptr).mfu_fwd_bwd.has_value());
}

TEST(Derive, RecomputationRaisesHfuOnly) {
  Trial none = gpu_trial("llama3-8b", "a100-80gb"), full = none;
  full.recompute = Recompute::kFull;
  const Metrics a = derive(none, eight_ranks(500), nullptr), b = derive(full, eight_ranks(500), nullptr);
  EXPECT_DOUBLE_EQ(*a.mfu, *b.mfu);
  EXPECT_NEAR(*b.hfu / *b.mfu, 4.0 / 3, 0.03);  // a forward more, less the head
  none.lora_rank = 8;                           // 4 N in place of 6 N, beside as much attention
  EXPECT_NEAR(*derive(none, eight_ranks(500), nullptr).mfu / *a.mfu, 2.0 / 3, 0.05);
}

TEST(Derive, MemoryIsTheMaximumOverRanksAndNamesTheRank) {
  std::vector<RankRecord> records{rank(0, {}), rank(1, {}), rank(2, {})};
  records[0].peak_allocated_bytes = 100;
  records[1].peak_allocated_bytes = records[2].peak_allocated_bytes = 300;
  records[0].peak_reserved_bytes = 900;
  records[2].host_peak_rss_bytes = 7;
  const Metrics m = derive(cpu_trial(3), records, nullptr);
  EXPECT_EQ(*m.peak_allocated_bytes, 300);
  EXPECT_EQ(*m.peak_rank, 1);
  EXPECT_EQ(*m.peak_reserved_bytes, 900);
  EXPECT_EQ(*m.host_peak_rss_bytes, 7);
}

TEST(Derive, AllocatorCountsAreSummedOverRanksAndTimedSteps) {
  std::vector<RankRecord> records{rank(0, {sample(0, 10, true), sample(1, 10)}),
                                  rank(1, {sample(0, 10, true), sample(1, 10)})};
  for (RankRecord& r : records) {
    r.alloc_retries = 9;  // warm-up included
    r.ooms = 2;
    r.samples[0].alloc_retries = 5;
    r.samples[1].alloc_retries = 4;
  }
  const Metrics m = derive(cpu_trial(2), records, nullptr);
  EXPECT_EQ(*m.alloc_retries, 8);
  EXPECT_EQ(*m.ooms, 4);
}

TEST(Derive, AskedBytesAreThoseOfTheEarliestOom) {
  std::vector<RankRecord> records{rank(0, {}), rank(1, {}), rank(2, {})};
  for (RankRecord& r : records) r.outcome = Outcome::kOom;
  records[0].oom_asked_bytes = 1;
  records[0].ended_unix_ns = 30;
  records[1].oom_asked_bytes = 2;
  records[1].ended_unix_ns = 10;
  records[2].outcome = Outcome::kCrash;
  EXPECT_EQ(*derive(cpu_trial(3), records, nullptr).oom_asked_bytes, 2);
}

TEST(Derive, NothingMeasuredIsAbsentEverywhere) {
  Metrics nothing;
  nothing.formula_version = kFormulaVersion;
  EXPECT_EQ(derive(cpu_trial(), {}, nullptr), nothing);
}

TEST(Derive, ZeroNegativeAndNotFiniteNeverReachAResult) {
  std::vector<StepSample> samples{sample(0, 0), sample(1, -5), sample(2, 10)};
  samples[2].forward_ns = 0;
  samples[0].loss = std::numeric_limits<double>::quiet_NaN();
  samples[2].loss = std::numeric_limits<double>::infinity();
  std::vector<RankRecord> records{rank(0, samples)};
  records[0].cpu_percent = std::numeric_limits<double>::quiet_NaN();
  const Metrics m = derive(cpu_trial(), records, nullptr);
  EXPECT_DOUBLE_EQ(*m.step_ms, 10);
  EXPECT_EQ(*m.timed_steps, 1);
  EXPECT_FALSE(m.forward_ms || m.loss_first || m.loss_last || m.util_mean);
  EXPECT_TRUE(m.backward_ms.has_value());
  for_each_metric(m, [](const FieldInfo& info, const auto& member) {
    if constexpr (std::is_same_v<std::decay_t<decltype(member)>, std::optional<double>>) {
      EXPECT_TRUE(!member || std::isfinite(*member)) << info.key;
    }
  });
}

TEST(Derive, AStepThatARankDidNotReportIsNotTimed) {
  const std::vector<RankRecord> records{rank(0, {sample(0, 10), sample(1, 10)}), rank(1, {sample(0, 20)})};
  EXPECT_EQ(*derive(cpu_trial(2), records, nullptr).timed_steps, 1);
  EXPECT_FALSE(derive(cpu_trial(3), records, nullptr).step_ms.has_value());
}

TEST(Derive, ExposedCommunicationOnlyWhereEveryRankSeparatedIt) {
  std::vector<RankRecord> records{rank(0, {sample(0, 10)}), rank(1, {sample(0, 10)})};
  records[0].samples[0].exposed_comm_ns = 2'000'000;
  EXPECT_FALSE(derive(cpu_trial(2), records, nullptr).exposed_comm_ms.has_value());
  records[1].samples[0].exposed_comm_ns = 0;
  EXPECT_DOUBLE_EQ(*derive(cpu_trial(2), records, nullptr).exposed_comm_ms, 2);
}

TEST(Derive, TheWaitForDataIsThatOfTheSlowestRankAndNoBubble) {
  std::vector<RankRecord> records{rank(0, {sample(0, 16)}), rank(1, {sample(0, 16)})};
  EXPECT_FALSE(derive(cpu_trial(2), records, nullptr).data_ms);
  Trial t = cpu_trial(2);
  t.dp = 1, t.pp = 2;
  EXPECT_DOUBLE_EQ(*derive(t, records, nullptr).bubble, 2.0 / 14) << "16 ms: 4 forward, 8 backward, 2 update";
  records[0].samples[0].data_ns = 2'000'000, records[1].samples[0].data_ns = 1'000'000;
  const Metrics m = derive(t, records, nullptr);
  EXPECT_DOUBLE_EQ(m.data_ms.value_or(0), 2);
  EXPECT_DOUBLE_EQ(*m.bubble, 1.0 / (12 + 13));
}

TEST(Derive, TheBubbleIsWhatIsNeitherComputationNorOptimizer) {
  std::vector<RankRecord> records{rank(0, {sample(0, 10)}), rank(1, {sample(0, 10)})};
  for (RankRecord& r : records) {
    StepSample& s = r.samples[0];
    s.step_ns = 10'000'000, s.forward_ns = 2'000'000, s.backward_ns = 4'000'000, s.optimizer_ns = 2'000'000;
  }
  records[1].samples[0].forward_ns = 3'000'000;
  Trial t = cpu_trial(2);
  EXPECT_FALSE(derive(t, records, nullptr).bubble.has_value());
  t.dp = 1, t.pp = 2;
  EXPECT_DOUBLE_EQ(*derive(t, records, nullptr).bubble, 3.0 / 16);
}

TEST(Derive, ARankWithoutTheHeadHasNoLoss) {
  std::vector<RankRecord> records{rank(0, {sample(0, 10)}), rank(1, {sample(0, 10)})};
  records[0].samples[0].loss = 0, records[0].samples[0].tokens = 0;
  records[1].samples[0].loss = 4;
  EXPECT_DOUBLE_EQ(*derive(cpu_trial(2), records, nullptr).loss_first, 4);
  EXPECT_DOUBLE_EQ(*whole_steps(records, 2).at(0).loss, 4);
}

TEST(Derive, LossIsWeightedByTokens) {
  std::vector<RankRecord> records{rank(0, {sample(0, 10)}), rank(1, {sample(0, 10)})};
  records[0].samples[0].loss = 1;
  records[1].samples[0].loss = 4;
  records[1].samples[0].tokens = 200;
  EXPECT_DOUBLE_EQ(*derive(cpu_trial(2), records, nullptr).loss_first, 3);
}

TEST(Derive, UtilisationOfTheAgentElseProcessCpu) {
  std::vector<RankRecord> records{rank(0, {}), rank(1, {})};
  records[0].cpu_percent = 90;
  records[1].cpu_percent = 70;
  records[1].startup_ns = 5'000'000;
  AttemptEnd end;
  end.throttle = "power_cap";
  Metrics m = derive(cpu_trial(2), records, &end);
  EXPECT_DOUBLE_EQ(*m.util_mean, 80);
  EXPECT_DOUBLE_EQ(*m.startup_ms, 5);
  EXPECT_EQ(*m.throttle, "power_cap");
  end.util_mean = 55;
  end.util_sd = 3;
  m = derive(cpu_trial(2), records, &end);
  EXPECT_DOUBLE_EQ(*m.util_mean, 55);
  EXPECT_DOUBLE_EQ(*m.util_sd, 3);
}

TEST(Derive, TokensPerJouleAreOfMeasuredPower) {
  const std::vector<RankRecord> records{rank(0, {sample(0, 10)}), rank(1, {sample(0, 10)})};
  AttemptEnd end;
  EXPECT_FALSE(derive(cpu_trial(2), records, &end).tokens_per_joule);
  end.power_mean_w = 250;
  const Metrics m = derive(cpu_trial(2), records, &end);
  EXPECT_DOUBLE_EQ(*m.tokens_per_joule, *m.tokens_per_s_gpu / 250);
  end.power_mean_w = 0;
  EXPECT_FALSE(derive(cpu_trial(2), records, &end).tokens_per_joule) << "a sensor that says nothing";
}

TEST(DeriveFromRate, FollowsTheSameFormulasAsMeasuredSteps) {
  const Trial t = gpu_trial("playbook-8b", "h100-sxm-80gb");
  const Metrics measured = derive(t, eight_ranks(500), nullptr);
  Metrics stated;
  stated.tokens_per_s_gpu = measured.tokens_per_s_gpu;
  stated.mfu_reported = 0.9;
  const Metrics followed = derive_from_rate(t, stated);
  EXPECT_DOUBLE_EQ(*followed.mfu, *measured.mfu);
  EXPECT_DOUBLE_EQ(*followed.cost_per_mt, *measured.cost_per_mt);
  EXPECT_DOUBLE_EQ(*followed.tokens_per_s, *measured.tokens_per_s);
  EXPECT_EQ(followed.mfu_reported, 0.9) << "a claim stays a claim";
  EXPECT_FALSE(followed.step_ms) << "a step time is never made up";
  EXPECT_EQ(followed.formula_version, kFormulaVersion);
}

TEST(DeriveFromRate, AStepTimeGivesARateAndNothingGivesNothing) {
  const Trial t = gpu_trial("playbook-8b", "h100-sxm-80gb");
  Metrics stated;
  EXPECT_FALSE(derive_from_rate(t, stated).mfu);
  stated.step_ms = 500;
  EXPECT_DOUBLE_EQ(*derive_from_rate(t, stated).tokens_per_s, 8 * 4096 / 0.5);
}

TEST(DeriveFromRate, AModelWithoutDimensionsHasNoFlops) {
  Trial t = gpu_trial("playbook-8b", "h100-sxm-80gb");
  t.spec = {};
  Metrics stated;
  stated.tokens_per_s_gpu = 100;
  const Metrics m = derive_from_rate(t, stated);
  EXPECT_FALSE(m.mfu || m.hfu || m.tflops_gpu);
  EXPECT_DOUBLE_EQ(*m.tokens_per_s, 800);
}

TEST(Derive, WhatIsSentIsTheMostOfAnyRankAndAbsentWithoutAGroup) {
  std::vector<RankRecord> records{rank(0, {sample(0, 10)}), rank(1, {sample(0, 10)})};
  records[0].sent = {{"dp", 3, 700}, {"tp", 12, 50}, {"world", 1, 8}};
  records[1].sent = {{"dp", 2, 900}, {"tp", 14, 40}, {"world", 1, 8}};
  const Metrics m = derive(cpu_trial(2), records, nullptr);
  EXPECT_EQ(m.sent_bytes_dp, 900);
  EXPECT_EQ(m.calls_dp, 3);
  EXPECT_EQ(m.sent_bytes_tp, 50);
  EXPECT_EQ(m.calls_tp, 14);
  EXPECT_EQ(m.sent_bytes, 948) << "the most of one rank, not the sum of the columns";
  EXPECT_FALSE(m.sent_bytes_pp);
  EXPECT_FALSE(derive(cpu_trial(1), std::vector{rank(0, {sample(0, 10)})}, nullptr).sent_bytes);
}

TEST(Derive, ExpertLoadLossScaleAndSkippedSteps) {
  std::vector<RankRecord> records{rank(0, {sample(0, 10)}), rank(1, {sample(0, 10)})};
  records[0].expert_load = 1.25, records[1].expert_load = 2.5;
  for (RankRecord& r : records) r.skipped_steps = 2, r.loss_scale = 16384;
  const Metrics m = derive(cpu_trial(2), records, nullptr);
  EXPECT_EQ(m.expert_load, 2.5);
  EXPECT_EQ(m.skipped_steps, 2) << "all ranks skip the same steps";
  EXPECT_EQ(m.loss_scale, 16384);
}

// Each rank says how many steps had no update; it is those in which the optimizer took least time.
TEST(Derive, AStepWithoutAnUpdateIsNoTimedStep) {
  std::vector<RankRecord> records{
      rank(0, {sample(0, 7), sample(1, 20), sample(2, 6), sample(3, 30), sample(4, 8, true)}),
      rank(1, {sample(0, 7), sample(1, 20), sample(2, 6), sample(3, 30), sample(4, 8, true)})};
  for (RankRecord& r : records) r.skipped_steps = 2, r.loss_scale = 16384;
  records[0].samples[2].optimizer_ns = 50'000'000;  // it waited for the other one
  const Metrics m = derive(cpu_trial(2), records, nullptr);
  EXPECT_DOUBLE_EQ(*m.step_ms, 25);
  EXPECT_EQ(m.timed_steps, 2);
  EXPECT_EQ(m.ranks_reported, 2);
  EXPECT_FALSE(never_updated(m));
}

TEST(Derive, WithoutAnyUpdateThereAreNoTimes) {
  std::vector<RankRecord> records{rank(0, {sample(0, 10, true), sample(1, 10), sample(2, 12)})};
  records[0].skipped_steps = 2, records[0].loss_scale = 16384;
  const Metrics m = derive(cpu_trial(), records, nullptr, 3.0);
  EXPECT_FALSE(m.step_ms || m.tokens_per_s || m.cost_per_mt || m.timed_steps || m.run_tokens_per_s);
  EXPECT_EQ(m.skipped_steps, 2);
  EXPECT_TRUE(never_updated(m));
  EXPECT_FALSE(never_updated(Metrics{}));
}

TEST(Derive, AGpusLoadIsNeverThatOfAProcessor) {
  std::vector<RankRecord> records(1);
  records[0].cpu_percent = 70;
  Trial trial;
  trial.hardware = "h100-sxm-80gb";
  EXPECT_FALSE(derive(trial, records, nullptr).util_mean);
}

TEST(Derive, ARateAboveThePeakIsSaidWithItsNumbers) {
  Trial trial;
  trial.hardware = "h100-sxm-80gb", trial.precision = Precision::kBf16;
  Metrics m;
  m.step_ms = 2, m.tflops_gpu = 1500, m.peak_flops = 1e15, m.mfu = 1.5;
  const auto why = beyond_peak(trial, m);
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("1.50 times"), std::string::npos) << *why;
  m.mfu = 0.9, m.hfu = 1.2;
  EXPECT_TRUE(beyond_peak(trial, m)) << "what is recomputed is computed too";
  m.hfu = 0.95;
  EXPECT_FALSE(beyond_peak(trial, m));
  EXPECT_FALSE(beyond_peak(trial, Metrics{}));
}

}  // namespace
}  // namespace sweep::metrics
