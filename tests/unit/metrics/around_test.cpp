// Checkpoints, evaluations and loading around the steps, over ranks, and what a run with them costs.
#include "orchestrator/metrics/around.h"

#include <gtest/gtest.h>

#include "tests/unit/metrics/records_by_hand.h"

namespace sweep::metrics {
namespace {

// Two ranks with steps of 10 ms.
std::vector<RankRecord> steps_of_two_ranks() {
  return {rank(0, {sample(0, 10)}), rank(1, {sample(0, 10)})};
}

TEST(Around, BytesAreAddedAndTimesAreThoseOfTheSlowestRank) {
  auto records = steps_of_two_ranks();
  AroundStep around;
  around.checkpoint_bytes = 100, around.checkpoint_ns = 4'000'000, around.checkpoint_stall_ns = 1'000'000;
  around.checkpoint_host_bytes = 60;
  records[0].effective.around = around;
  around.checkpoint_bytes = 50, around.checkpoint_ns = 3'000'000, around.checkpoint_stall_ns = 2'000'000;
  around.checkpoint_host_bytes = 50;
  records[1].effective.around = around;
  const Metrics m = derive(cpu_trial(2), records, nullptr);
  EXPECT_EQ(m.checkpoint_bytes, 150);
  EXPECT_EQ(m.checkpoint_ms, 4);
  EXPECT_EQ(m.checkpoint_stall_ms, 2);
  EXPECT_EQ(m.checkpoint_host_bytes, 60);
}

TEST(Around, ARunStallsOnceEverySoManySteps) {
  auto records = steps_of_two_ranks();
  records[1].effective.around.emplace().checkpoint_stall_ns = 50'000'000;
  records[1].effective.around->checkpoint_ns = 80'000'000;
  Trial t = cpu_trial(2);
  t.checkpoint = CheckpointKind::kAsync, t.checkpoint_every = 20;
  const Metrics m = derive(t, records, nullptr, 3.0);
  EXPECT_DOUBLE_EQ(*m.run_tokens_per_s, *m.tokens_per_s * 10 / 12.5) << "10 ms a step, 50 ms every 20 steps";
  EXPECT_DOUBLE_EQ(*m.run_cost_per_mt, *m.cost_per_mt * 12.5 / 10);
  t.lengths = "fixed 16", t.seq_len = 64;
  const Metrics padded = derive(t, records, nullptr, 3.0);
  EXPECT_DOUBLE_EQ(*padded.useful_run_tokens_per_s, *padded.run_tokens_per_s / 4);
  EXPECT_DOUBLE_EQ(*padded.useful_run_cost_per_mt, *padded.run_cost_per_mt * 4);
}

// A checkpoint is on the disk before the next one begins.
TEST(Around, ARunIsNoFasterThanItsCheckpointsAreWritten) {
  auto records = steps_of_two_ranks();
  records[1].effective.around.emplace().checkpoint_stall_ns = 5'000'000;
  records[1].effective.around->checkpoint_ns = 80'000'000;
  Trial t = cpu_trial(2);
  t.checkpoint = CheckpointKind::kAsync, t.checkpoint_every = 2;
  const Metrics m = derive(t, records, nullptr, 3.0);
  EXPECT_DOUBLE_EQ(*m.run_tokens_per_s, *m.tokens_per_s * 10 / 40) << "80 ms every 2 steps";
  EXPECT_DOUBLE_EQ(*m.run_cost_per_mt, *m.cost_per_mt * 40 / 10);
  t.checkpoint_every = 8;
  EXPECT_DOUBLE_EQ(*derive(t, records, nullptr).run_tokens_per_s, *m.tokens_per_s * 10 / 10.625);
}

TEST(Around, WithoutItTheRateOfARunIsThatOfItsSteps) {
  const Metrics m = derive(cpu_trial(2), steps_of_two_ranks(), nullptr, 3.0);
  EXPECT_TRUE(m.run_tokens_per_s && m.run_cost_per_mt);
  EXPECT_EQ(m.run_tokens_per_s, m.tokens_per_s);
  EXPECT_EQ(m.run_cost_per_mt, m.cost_per_mt);
}

TEST(Around, WhatARehearsalDoesNotTimeLeavesTheRateOfTheRunUnknown) {
  auto records = steps_of_two_ranks();
  Trial t = cpu_trial(2);
  t.eval_batch_size = 4;
  EXPECT_FALSE(derive(t, records, nullptr, 3.0).run_tokens_per_s);
  t.eval_batch_size = 0, t.checkpoint = CheckpointKind::kSharded;
  records[0].effective.around.emplace().checkpoint_bytes = 7;
  const Metrics m = derive(t, records, nullptr, 3.0);
  EXPECT_EQ(m.checkpoint_bytes, 7);
  EXPECT_FALSE(m.run_tokens_per_s || m.run_cost_per_mt || m.checkpoint_ms);
}

TEST(Around, AnEvaluationOfARehearsalHasNoLoss) {
  auto records = steps_of_two_ranks();
  AroundStep& around = records[0].effective.around.emplace();
  around.eval_tokens = 100, around.eval_peak_bytes = 7;
  const Metrics m = derive(cpu_trial(2), records, nullptr);
  EXPECT_EQ(m.eval_peak_bytes, 7);
  EXPECT_FALSE(m.eval_loss);
}

TEST(Around, TheLossOfAnEvaluationIsTheMeanOverItsTokens) {
  auto records = steps_of_two_ranks();
  AroundStep& one = records[0].effective.around.emplace();
  one.eval_tokens = 100, one.eval_loss = 2.0;
  AroundStep& other = records[1].effective.around.emplace();
  other.eval_tokens = 300, other.eval_loss = 4.0;
  EXPECT_DOUBLE_EQ(derive(cpu_trial(2), records, nullptr).eval_loss.value_or(0), 3.5);
}

TEST(Around, TextMetricsAreOfTheRanksThatHaveThemAndTheirTimeOfTheSlowest) {
  std::vector<RankRecord> records = {rank(0, {sample(0, 10)}), rank(1, {sample(0, 10)}),
                                     rank(2, {sample(0, 10)})};
  i64 tokens = 0;
  for (RankRecord& r : records) r.effective.around.emplace().eval_tokens = tokens += 100;
  records[0].effective.around->eval_bleu = 0.1, records[0].effective.around->eval_rouge_l = 0.6;
  records[0].effective.around->eval_metrics_ns = 5'000'000;
  records[2].effective.around->eval_bleu = 0.3, records[2].effective.around->eval_rouge_l = 0.2;
  records[2].effective.around->eval_metrics_ns = 3'000'000;
  const Metrics m = derive(cpu_trial(3), records, nullptr);
  EXPECT_DOUBLE_EQ(m.eval_metrics_ms.value_or(0), 5);
  EXPECT_DOUBLE_EQ(m.eval_bleu.value_or(0), 0.25);
  EXPECT_DOUBLE_EQ(m.eval_rouge_l.value_or(0), 0.3);
}

}  // namespace
}  // namespace sweep::metrics
