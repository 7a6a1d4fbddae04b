// The backward in two parts of schedule zero_bubble, alone and with every other strategy, against one rank;
// its bytes on the wire against the formula, and the peak of every stage, what waits for the weights' part
// included, against the dry run.
#include <gtest/gtest.h>

#include "bench_kernels/shape/stage_split.h"
#include "bench_kernels/step/train_step.h"
#include "tests/parity/layouts.h"
#include "tests/parity/parity_table.h"
#include "tests/parity/rank_costs.h"

namespace sweep::testing {
namespace {

struct SplitCase {
  const char* name;
  void (*apply)(Trial&);
};

void mixtral(Trial& t) {
  t.spec.family = "mixtral", t.spec.experts = 4, t.spec.experts_per_token = 2;
  t.dp = t.ep = 2;
}
void latent_experts(Trial& t) {
  t.spec.family = "deepseek_v2", t.spec.kv_lora_rank = 12, t.spec.rope_head_dim = 4, t.spec.v_head_dim = 6;
  t.spec.experts = 4, t.spec.experts_per_token = 2, t.spec.shared_experts = 1;
  t.spec.dense_layers = 1, t.spec.dense_intermediate_size = 40;
}
void gpt2(Trial& t) {
  t.spec.family = "gpt2", t.spec.max_positions = 32, t.spec.linear_bias = true;
  t.spec.attention_bias = t.spec.tie_embeddings = true;
  t.spec.rmsnorm = t.spec.swiglu = t.spec.rope = false;
}

const SplitCase kSplitCases[] = {
    {"zero_bubble", [](Trial&) {}},
    {"zero_bubble pp 4", [](Trial& t) { t.pp = 4; }},
    {"zero_bubble tied",
     [](Trial& t) { t.spec.family = "qwen2", t.spec.attention_bias = t.spec.tie_embeddings = true; }},
    {"zero_bubble gpt2", gpt2},
    {"zero_bubble qwen3 tp 2", [](Trial& t) { t.spec.family = "qwen3", t.tp = 2; }},
    {"zero_bubble gemma3", windows_by_layer},
    {"zero_bubble gpt_oss", with_sinks},
    {"zero_bubble gpt_oss dp 2 ep 2 tp 2 zero 2",
     [](Trial& t) { with_sinks(t), t.dp = t.ep = t.tp = 2, t.zero = 2; }},
    {"zero_bubble gemma3 tp 2 sp", [](Trial& t) { windows_by_layer(t), t.tp = 2, t.sp = true; }},
    {"zero_bubble gemma3 dp 2 zero 3", [](Trial& t) { windows_by_layer(t), t.dp = 2, t.zero = 3; }},
    {"zero_bubble deepseek tp 2", [](Trial& t) { latent_experts(t), t.tp = 2; }},
    {"zero_bubble deepseek sp",
     [](Trial& t) { latent_experts(t), t.spec.q_lora_rank = 14, t.tp = 2, t.sp = true; }},
    {"zero_bubble dp 2", [](Trial& t) { t.dp = 2; }},
    {"zero_bubble dp 2 zero 1", [](Trial& t) { t.dp = 2, t.zero = 1; }},
    {"zero_bubble dp 2 zero 2", [](Trial& t) { t.dp = 2, t.zero = 2; }},
    {"zero_bubble dp 2 zero 3", [](Trial& t) { t.dp = 2, t.zero = 3; }},
    {"zero_bubble dp 2 zero 3 kept", [](Trial& t) { t.dp = 2, t.zero = 3, t.reshard_after_forward = false; }},
    {"zero_bubble tp 2", [](Trial& t) { t.tp = 2; }},
    {"zero_bubble tp 2 sp", [](Trial& t) { t.tp = 2, t.sp = true; }},
    {"zero_bubble tp 2 sp overlap gpt2", [](Trial& t) { gpt2(t), t.tp = 2, t.sp = t.tp_overlap = true; }},
    {"zero_bubble cp 2", [](Trial& t) { t.cp = 2; }},
    {"zero_bubble dp 2 ep 2", mixtral},
    {"zero_bubble dp 2 ep 2 zero 2", [](Trial& t) { mixtral(t), t.zero = 2; }},
    {"zero_bubble dp 2 tp 2 zero 3", [](Trial& t) { t.dp = t.tp = 2, t.zero = 3; }},
    {"zero_bubble offloaded activations", [](Trial& t) { t.activation_offload = true; }},
};

Trial split_trial(const SplitCase& c) {
  Trial t = tiny_trial();
  t.pp = 2, t.schedule = Schedule::kZeroBubble;
  c.apply(t);
  return with_degrees(t, t.dp, t.tp, t.pp, t.cp, t.ep);
}

TEST(ZeroBubble, GivesTheLossTheGradientsAndTheParametersOfOneRank) {
  ParityTable table(3);
  for (const SplitCase& c : kSplitCases) table.expect_equal(c.name, split_trial(c));
}

TEST(ZeroBubble, SendsWhatTheFormulaSaysAndPeaksWhereTheDryRunSays) {
  for (const SplitCase& c : kSplitCases) {
    const Trial trial = split_trial(c);
    const std::vector<RankCost> costs = costs_of_ranks(trial);
    const auto dry = dry_peaks(trial);
    const i64 ranks_of_stage = trial.world() / trial.pp;
    for (i64 rank = 0; rank < trial.world(); ++rank) {
      const RankCost& cost = costs[static_cast<std::size_t>(rank)];
      const i64 stage = rank / ranks_of_stage;
      EXPECT_EQ(cost.pipeline_bytes, shape::pipeline_traffic(trial, stage).bytes)
          << c.name << ", rank " << rank;
      EXPECT_EQ(cost.peak_bytes, dry[static_cast<std::size_t>(stage)]) << c.name << ", rank " << rank;
    }
  }
}

TEST(ZeroBubble, WhatWaitsForTheWeightsPartIsMoreThan1f1bHolds) {
  Trial t = tiny_trial();
  t.pp = 2;
  t = with_degrees(t, 1, 1, 2, 1);
  const auto whole = dry_peaks(t);
  t.schedule = Schedule::kZeroBubble;
  EXPECT_GT(dry_peaks(t).back(), whole.back()) << "two micro-batches where 1f1b has one";
}

TEST(ZeroBubble, RefusesRecomputation) {
  Trial t = tiny_trial();
  t.schedule = Schedule::kZeroBubble, t.recompute = Recompute::kFull;
  const auto sentence = step::unsupported(with_degrees(t, 1, 1, 2, 1), c10::DeviceType::CPU);
  ASSERT_TRUE(sentence);
  EXPECT_NE(sentence->find("zero_bubble with recompute full"), std::string::npos) << *sentence;
}

}  // namespace
}  // namespace sweep::testing
