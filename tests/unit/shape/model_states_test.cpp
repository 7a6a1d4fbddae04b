// The table of bytes per parameter by precision, gradient type, stage and offload; and traffic by hand.
#include "bench_kernels/shape/model_states.h"

#include <gtest/gtest.h>

#include <array>

#include "bench_kernels/shape/optimizer_states.h"

namespace sweep::shape {
namespace {

Trial with(Precision precision, GradDtype grad_dtype = GradDtype::kAuto, i64 zero = 0, i64 dp = 4) {
  Trial t;
  t.precision = precision, t.grad_dtype = grad_dtype, t.zero = zero, t.dp = dp;
  return t;
}

std::array<double, 3> bytes(const Trial& t) {
  const StateBytes b = state_bytes(t);
  return {b.weights, b.gradients, b.optimizer};
}
using Row = std::array<double, 3>;

TEST(StateBytes, ByPrecisionAndGradientType) {
  EXPECT_EQ(bytes(with(Precision::kFp32)), (Row{4, 4, 8}));
  EXPECT_EQ(bytes(with(Precision::kFp32, GradDtype::kBf16)), (Row{4, 2, 8}));
  EXPECT_EQ(bytes(with(Precision::kBf16)), (Row{2, 2, 4}));
  EXPECT_EQ(bytes(with(Precision::kBf16Master)), (Row{2, 2, 12}));
  EXPECT_EQ(bytes(with(Precision::kBf16Master, GradDtype::kFp32)), (Row{2, 4, 12}));
  EXPECT_EQ(bytes(with(Precision::kFp16)), (Row{2, 2, 12}));
  EXPECT_EQ(bytes(with(Precision::kBf16Mixed)), (Row{4, 4, 8}));
  EXPECT_EQ(bytes(with(Precision::kBf16Amp)), (Row{4, 4, 8}));
  EXPECT_EQ(bytes(with(Precision::kFp16Amp)), (Row{4, 4, 8}));
}

TEST(StateBytes, DividedAsTheStageSays) {
  EXPECT_EQ(bytes(with(Precision::kFp32, GradDtype::kAuto, 1)), (Row{4, 4, 2}));
  EXPECT_EQ(bytes(with(Precision::kFp32, GradDtype::kAuto, 2)), (Row{4, 1, 2}));
  EXPECT_EQ(bytes(with(Precision::kFp32, GradDtype::kAuto, 3)), (Row{1, 1, 2}));
  Trial hybrid = with(Precision::kFp32, GradDtype::kAuto, 3);
  hybrid.dp_shard = 2;
  EXPECT_EQ(bytes(hybrid), (Row{2, 2, 4}));
  hybrid.cp = 2;  // context-parallel ranks hold the same parameters
  EXPECT_EQ(bytes(hybrid), (Row{1, 1, 2}));
}

TEST(StateBytes, WhatIsOffloadedIsNotOnTheDevice) {
  Trial t = with(Precision::kBf16Master, GradDtype::kFp32, 2);
  t.offload = Offload::kOptimizer;
  EXPECT_EQ(bytes(t), (Row{2, 1, 0}));
  t.zero = 3, t.offload = Offload::kParameters;
  EXPECT_EQ(bytes(t), (Row{0, 1, 0}));
}

TEST(StateBytes, OfExpertsOverTheRanksThatHoldThem) {
  const auto experts = [](Trial t) {
    t.ep = 2;
    const StateBytes b = expert_state_bytes(t);
    return Row{b.weights, b.gradients, b.optimizer};
  };
  EXPECT_EQ(experts(with(Precision::kFp32)), (Row{2, 2, 4}));  // half of the experts
  EXPECT_EQ(experts(with(Precision::kFp32, GradDtype::kAuto, 1)),
            (Row{2, 2, 2}));  // and their moments on 2 ranks each
  EXPECT_EQ(experts(with(Precision::kFp32, GradDtype::kAuto, 3)), (Row{1, 1, 2}));
  Trial hybrid = with(Precision::kFp32, GradDtype::kAuto, 3);
  hybrid.dp_shard = 2, hybrid.ep = 1;
  const StateBytes b = expert_state_bytes(hybrid);
  EXPECT_EQ((Row{b.weights, b.gradients, b.optimizer}), (Row{2, 2, 4})) << "two sets, as of dense tensors";
  EXPECT_EQ(expert_state_traffic(hybrid, 1000).all_reduce, state_traffic(hybrid, 1000).all_reduce);
  EXPECT_EQ(expert_state_traffic(hybrid, 1000).all_gather, state_traffic(hybrid, 1000).all_gather);
}

// dp 8 in two sets of 4 ranks, ep 2: a set has its experts on 2 ranks each.
TEST(StateBytes, OfExpertsInAShardSet) {
  Trial t = with(Precision::kFp32, GradDtype::kAuto, 1, 8);
  t.ep = 2, t.dp_shard = 4;
  const auto experts = [&](i64 zero) {
    t.zero = zero;
    const StateBytes b = expert_state_bytes(t);
    return Row{b.weights, b.gradients, b.optimizer};
  };
  EXPECT_EQ(expert_shard_ranks(t), 2);
  EXPECT_EQ(experts(1), (Row{2, 2, 2}));
  EXPECT_EQ(experts(2), (Row{2, 1, 2}));
  EXPECT_EQ(experts(3), (Row{1, 1, 2}));
  EXPECT_EQ(expert_state_traffic(t, 1000).reduce_scatter, 2000) << "a half of 4000, of 2 ranks";
  EXPECT_EQ(expert_state_traffic(t, 1000).all_gather, 2 * 2000);
  EXPECT_EQ(expert_state_traffic(t, 1000).all_reduce, 2000) << "2 x 1/2 x 2000, of both sets";
  t.ep = 4;
  EXPECT_EQ(expert_state_traffic(t, 1000).all_gather, 0) << "each rank of a set has experts of its own";
  EXPECT_EQ(expert_state_traffic(t, 1000).all_reduce, 4000);
  t.cp = 2;
  EXPECT_EQ(expert_shard_ranks(t), 2);
}

TEST(StateTraffic, ByHand) {
  Trial t = with(Precision::kFp32, GradDtype::kAuto, 0);
  t.grad_accum = 3;
  EXPECT_EQ(state_traffic(t, 1000).all_reduce, 2 * 3 * 1000.0);  // 2 x 3/4 x 4000
  t.zero = 1;
  EXPECT_EQ(state_traffic(t, 1000).reduce_scatter, 3000);
  EXPECT_EQ(state_traffic(t, 1000).all_gather, 3000);
  t.zero = 2;
  EXPECT_EQ(state_traffic(t, 1000).reduce_scatter, 9000);
  t.zero = 3;
  EXPECT_EQ(state_traffic(t, 1000).all_gather, 2 * 9000);
  EXPECT_EQ(state_traffic(t, 1000, 400).all_gather, 2 * 9000 - 3 * 1200);  // a shared table is kept
  t.reshard_after_forward = false;
  EXPECT_EQ(state_traffic(t, 1000).all_gather, 9000);
  t.dp_shard = 2;
  EXPECT_EQ(state_traffic(t, 1000).reduce_scatter, 3 * 2000);
  EXPECT_EQ(state_traffic(t, 1000).all_reduce, 2 * 1000);  // the half of each, between two copies
}

// Where weights stay after forward, the schedule says how often no micro-batch is in flight.
TEST(StateTraffic, WeightsThatStayAreGatheredAsTheScheduleSays) {
  Trial t = with(Precision::kFp32, GradDtype::kAuto, 3);
  t.grad_accum = 4, t.pp = 2;
  EXPECT_EQ(weight_gathers(t, {0, 0}), 8);
  EXPECT_EQ(weight_gathers(t, {1, 0}), 8);
  t.reshard_after_forward = false;
  EXPECT_EQ(weight_gathers(t, {0, 0}), 1) << "one is in flight from the first forward to the last backward";
  EXPECT_EQ(weight_gathers(t, {1, 0}), 4) << "each backward follows its forward";
  EXPECT_EQ(state_traffic(t, 1000, 0, {0, 0}).all_gather, 3000);
  EXPECT_EQ(state_traffic(t, 1000, 0, {1, 0}).all_gather, 4 * 3000);
  EXPECT_EQ(quantized_traffic(t, 1000, 0, {1, 0}).all_gather, 4 * 750);
  t.schedule = Schedule::kZeroBubble;
  EXPECT_EQ(weight_gathers(t, {1, 0}), 4) << "the weights' part of backward reads none";
  t.schedule = Schedule::kGpipe;
  EXPECT_EQ(weight_gathers(t, {1, 0}), 1);
  t.schedule = Schedule::kInterleaved, t.vpp = 2;
  EXPECT_EQ(weight_gathers(t, {1, 1}), 4);
  EXPECT_EQ(weight_gathers(t, {1, 0}), 1) << "its next forwards come before its last backward";
  t.pp = t.vpp = 1;
  EXPECT_EQ(weight_gathers(t), 4);
}

TEST(StateTraffic, OfExpertsIsAmongTheRanksThatHoldThem) {
  Trial t = with(Precision::kFp32, GradDtype::kAuto, 0);
  t.ep = 2, t.grad_accum = 3;
  EXPECT_EQ(expert_state_traffic(t, 1000).all_reduce, 2 * 2000.0);  // 2 x 1/2 x 4000
  t.zero = 2;
  EXPECT_EQ(expert_state_traffic(t, 1000).reduce_scatter, 3 * 2000.0);
  EXPECT_EQ(expert_state_traffic(t, 1000).all_reduce, 0);
  t.ep = 4, t.zero = 3;
  EXPECT_EQ(expert_state_traffic(t, 1000).total(), 0) << "no other rank has them";
}

TEST(OptimizerStates, WhatEachKeepsOnTheDevice) {
  Trial t = with(Precision::kFp32, GradDtype::kAuto, 0);
  t.optimizer = OptimizerKind::kAdamw8bit;
  EXPECT_EQ(state_bytes(t).optimizer, 2 + 8.0 / 256);
  EXPECT_EQ(optimizer_bytes(t, 4095), 8 * 4095) << "few numbers keep fp32 moments";
  EXPECT_EQ(optimizer_bytes(t, 4096), 2 * 4096 + 16 * 8);
  EXPECT_EQ(optimizer_bytes(t, 4097), 2 * 4097 + 17 * 8) << "a block that is not full has scales too";
  t.optimizer = OptimizerKind::kPagedAdamw;
  EXPECT_EQ(state_bytes(t).optimizer, 0);
  EXPECT_EQ(update_bytes(t, 1e9, 1e8, false), 2.0 * 2 * 4 * kPage) << "two pages of two moments";
  EXPECT_EQ(update_bytes(t, 1000, 1000, false), 2 * 4 * 1000.0) << "there is one page";
  t.precision = Precision::kBf16Master;
  EXPECT_EQ(state_bytes(t).optimizer, 4) << "the masters stay";
}

TEST(OptimizerStates, WhatDoesNotGoTogetherHasAReason) {
  Trial t = with(Precision::kFp32, GradDtype::kAuto, 0);
  const auto refused = [&](auto change) {
    Trial other = t;
    change(other);
    return states_unsupported(other).has_value();
  };
  t.optimizer = OptimizerKind::kAdafactor;
  EXPECT_FALSE(refused([](Trial&) {}));
  EXPECT_FALSE(refused([](Trial& o) { o.offload = Offload::kOptimizer; }));
  EXPECT_FALSE(refused([](Trial& o) { o.zero = 3, o.dp = o.cp = 1; })) << "one rank has whole matrices";
  for (const i64 zero : {1, 2, 3}) EXPECT_TRUE(refused([&](Trial& o) { o.zero = zero; })) << zero;
  EXPECT_TRUE(refused([](Trial& o) { o.tp = 2; }));
  EXPECT_TRUE(refused([](Trial& o) { o.lora_rank = 4; }));
  EXPECT_TRUE(refused([](Trial& o) { o.offload = Offload::kDisk; }));
  t.optimizer = OptimizerKind::kPagedAdamw;
  EXPECT_FALSE(refused([](Trial& o) { o.zero = 3; }));
  for (const Offload offload : {Offload::kOptimizer, Offload::kParameters, Offload::kDisk})
    EXPECT_TRUE(refused([&](Trial& o) { o.offload = offload; })) << to_string(offload);
  t.optimizer = OptimizerKind::kAdamw8bit;
  EXPECT_FALSE(refused([](Trial& o) { o.hardware = "h100-sxm-80gb"; }));
  EXPECT_TRUE(refused([](Trial& o) { o.hardware = "v100-32gb"; })) << "no code is compiled for it";
  EXPECT_FALSE(refused([](Trial& o) { o.hardware = "v100-32gb", o.offload = Offload::kOptimizer; }));
}

TEST(StateTypes, WhatAutocastIsNotBuiltWithHasAReason) {
  using Change = void (*)(Trial&);
  const std::pair<const char*, Change> gaps[] = {
      {"experts", [](Trial& t) { t.spec.experts = 4; }},
      {"latent", [](Trial& t) { t.spec.kv_lora_rank = 16; }},
      {"norms of queries", [](Trial& t) { t.spec.family = "qwen3"; }},
      {"an encoder", [](Trial& t) { t.spec.encoder_layers = 2; }},
      {"tp above 1", [](Trial& t) { t.tp = 2; }},
      {"cp above 1", [](Trial& t) { t.cp = 2; }},
      {"adapters", [](Trial& t) { t.lora_rank = 4; }},
      {"zero_bubble", [](Trial& t) { t.pp = 2, t.schedule = Schedule::kZeroBubble; }}};
  for (const Precision precision : {Precision::kBf16Amp, Precision::kFp16Amp}) {
    EXPECT_FALSE(states_unsupported(with(precision)));
    for (const auto& [what, change] : gaps) {
      Trial t = with(precision);
      change(t);
      ASSERT_TRUE(states_unsupported(t)) << what;
      EXPECT_NE(states_unsupported(t)->find(what), std::string::npos) << *states_unsupported(t);
    }
  }
  EXPECT_TRUE(states_unsupported(with(Precision::kFp16Amp, GradDtype::kBf16)));
  EXPECT_FALSE(states_unsupported(with(Precision::kBf16Amp, GradDtype::kBf16)));
}

TEST(StateTypes, WhatDoesNotGoTogetherHasAReason) {
  EXPECT_FALSE(states_unsupported(with(Precision::kBf16Mixed, GradDtype::kBf16, 3)));
  Trial eight = with(Precision::kFp8);
  eight.spec.hidden_size = 64, eight.spec.heads = eight.spec.kv_heads = 4, eight.spec.head_dim = 16;
  eight.spec.intermediate_size = 96, eight.seq_len = 32;
  EXPECT_FALSE(states_unsupported(eight)) << *states_unsupported(eight);
  EXPECT_TRUE(state_types(eight).master);
  eight.spec.intermediate_size = 100;
  EXPECT_NE(states_unsupported(eight)->find("intermediate_size / tp is 100"), std::string::npos);
  eight.spec.experts = 4;
  EXPECT_NE(states_unsupported(eight)->find("experts"), std::string::npos);
  EXPECT_TRUE(states_unsupported(with(Precision::kFp16, GradDtype::kBf16)));
  Trial t = with(Precision::kFp32);
  t.dp_shard = 2;
  EXPECT_TRUE(states_unsupported(t));
  t.zero = 1;
  EXPECT_FALSE(states_unsupported(t));
}

}  // namespace
}  // namespace sweep::shape
