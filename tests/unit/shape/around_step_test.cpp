// The bytes and the host memory of checkpoints, beside published sizes, and what is not combined with them.
#include "bench_kernels/shape/around_step.h"

#include <gtest/gtest.h>

#include "bench_kernels/shape/catalogue.h"

namespace sweep::shape {
namespace {

Trial big() {
  Trial t;
  t.model = "llama3-70b", t.spec = *find_model("llama3-70b");
  t.hardware = "a10g-24gb", t.nodes = 8, t.gpus_per_node = 4, t.dp = 32, t.zero = 3;
  t.precision = Precision::kBf16Master, t.checkpoint = CheckpointKind::kFull;
  return t;
}

// "an LLM with 70 billion parameters can have a checkpoint size of 980GB": the chapter on efficient training.
TEST(AroundStep, ACheckpointOf70BIsThePublishedSize) {
  EXPECT_NEAR(static_cast<double>(checkpoint_bytes(big())), 980e9, 10e9);
}

TEST(AroundStep, BytesFollowFromTheStatesAlone) {
  Trial t = big();
  const i64 bytes = checkpoint_bytes(t), parameters = bytes / 14;
  EXPECT_EQ(bytes % 14, 0) << "2 of the weight, 4 of the master, 8 of the moments";
  t.zero = 0, t.dp = 4, t.tp = 8, t.checkpoint = CheckpointKind::kSharded;
  EXPECT_EQ(checkpoint_bytes(t), bytes) << "however they are split";
  t.precision = Precision::kBf16;
  EXPECT_EQ(checkpoint_bytes(t), 6 * parameters);
  t.optimizer = OptimizerKind::kSgd;
  EXPECT_EQ(checkpoint_bytes(t), 2 * parameters);
  t.lora_rank = 8;
  EXPECT_LT(checkpoint_bytes(t), parameters / 100) << "adapters alone";
  t.checkpoint = CheckpointKind::kNone;
  EXPECT_EQ(checkpoint_bytes(t), 0);
}

TEST(AroundStep, HostMemoryIsThatOfRankZeroOrOfANodesShares) {
  Trial t = big();
  const auto bytes = static_cast<double>(checkpoint_bytes(t));
  EXPECT_DOUBLE_EQ(checkpoint_host_bytes(t), bytes);
  EXPECT_TRUE(host_memory_objection(t, bytes - 1));
  EXPECT_FALSE(host_memory_objection(t, bytes));
  t.checkpoint = CheckpointKind::kAsync;
  EXPECT_DOUBLE_EQ(checkpoint_host_bytes(t), bytes / 8);
  EXPECT_TRUE(host_memory_objection(t, bytes / 8 - 1));
  t.checkpoint = CheckpointKind::kSharded;
  EXPECT_FALSE(host_memory_objection(t, 1));
}

// "Rank-0 (aka trainer) should have 140 GB memory": LLMForge, of 70B in full on 32 A10G.
TEST(AroundStep, LoadingOrGathering70BTakesThePublishedMemoryOfRankZero) {
  Trial t = big();
  t.spec = *find_model("llama2-70b"), t.precision = Precision::kBf16;
  t.checkpoint = CheckpointKind::kNone, t.weights_load = WeightsLoad::kRank0;
  EXPECT_NEAR(load_host_bytes(t), 140e9, 3e9);
  EXPECT_TRUE(host_memory_objection(t, 64e9)) << "a g5.4xlarge";
  EXPECT_FALSE(host_memory_objection(t, 192e9)) << "a g5.12xlarge";
  EXPECT_DOUBLE_EQ(static_cast<double>(load_bytes(t)), load_host_bytes(t));
  t.weights_load = WeightsLoad::kSharded;
  EXPECT_FALSE(host_memory_objection(t, 64e9));
  const i64 once = load_bytes(t);
  t.zero = 2;
  EXPECT_EQ(load_bytes(t), 32 * once) << "each rank keeps all, and reads it";
  Trial experts = t;
  experts.spec = *find_model("mixtral-8x7b");
  experts.zero = 3, experts.dp_shard = 16, experts.ep = 1;
  const i64 halves = load_bytes(experts);
  experts.dp_shard.reset();
  EXPECT_EQ(halves, 2 * load_bytes(experts)) << "two sets read all weights, experts too";
  t.weights_load = WeightsLoad::kNone, t.checkpoint = CheckpointKind::kFull,
  t.optimizer = OptimizerKind::kSgd;
  EXPECT_NEAR(checkpoint_host_bytes(t), 140e9, 3e9) << "the weights alone";
}

TEST(AroundStep, WhatIsNotCombinedIsRefused) {
  const auto refused = [](auto change) {
    Trial t = big();
    change(t);
    return around_objection(t).has_value();
  };
  EXPECT_FALSE(refused([](Trial&) {}));
  EXPECT_TRUE(refused([](Trial& t) { t.optimizer = OptimizerKind::kAdamw8bit; }));
  EXPECT_TRUE(refused([](Trial& t) { t.optimizer = OptimizerKind::kAdafactor; }));
  EXPECT_TRUE(refused([](Trial& t) { t.offload = Offload::kDisk; }));
  EXPECT_TRUE(refused([](Trial& t) { t.offload = Offload::kDiskParameters; }));
  EXPECT_TRUE(refused([](Trial& t) { t.tp = 2; }));
  EXPECT_TRUE(refused([](Trial& t) { t.pp = 2; }));
  EXPECT_FALSE(refused([](Trial& t) { t.cp = 2; }));
  EXPECT_FALSE(refused([](Trial& t) { t.tp = 2, t.checkpoint = CheckpointKind::kSharded; }));
  EXPECT_FALSE(refused([](Trial& t) { t.offload = Offload::kDisk, t.checkpoint = CheckpointKind::kNone; }));
}

TEST(AroundStep, TextMetricsNeedAnEvaluationAndWholeSequences) {
  Trial t = big();
  t.checkpoint = CheckpointKind::kNone, t.eval_metrics = EvalMetrics::kNgram;
  EXPECT_TRUE(around_objection(t));
  t.eval_batch_size = 4;
  EXPECT_FALSE(around_objection(t));
  t.dp = 16, t.cp = 2;
  EXPECT_TRUE(around_objection(t));
  t.eval_metrics = EvalMetrics::kLoss;
  EXPECT_FALSE(around_objection(t));
  t.cp = 1, t.tp = 2, t.sp = true, t.seq_len = 9, t.eval_batch_size = 2;
  EXPECT_FALSE(around_objection(t));
  t.eval_batch_size = 1;
  EXPECT_TRUE(around_objection(t)) << "sp cannot split nine rows in two";
}

TEST(AroundStep, DataHasWholeSequencesOfAVocabularyThatTheTableHolds) {
  Trial idle;
  idle.data_ahead = 4;
  EXPECT_TRUE(around_objection(idle)) << "nothing is read, and the trials would be the same";
  Trial t = big();
  t.checkpoint = CheckpointKind::kNone, t.seq_len = 9, t.grad_accum = 3, t.micro_batch_size = 2;
  EXPECT_DOUBLE_EQ(data_tokens(t), 0);
  for (const DataSource data : {DataSource::kTokens, DataSource::kText}) {
    t.data = data;
    EXPECT_DOUBLE_EQ(data_tokens(t), 60);
    EXPECT_FALSE(around_objection(t));
    Trial documents = t;
    documents.lengths = "fixed 4";
    EXPECT_TRUE(around_objection(documents));
    Trial wide = t;
    wide.spec.vocab_size = i64{1} << 24;
    EXPECT_EQ(around_objection(wide).has_value(), data == DataSource::kText);
  }
}

}  // namespace
}  // namespace sweep::shape
