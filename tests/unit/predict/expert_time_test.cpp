// The time of routed experts in a layer: exchanges over links and network, rows that pass memory, kernels, and weights that few
// rows wait for.
#include "orchestrator/predict/expert_time.h"

#include <gtest/gtest.h>

#include "tests/unit/predict/predict_fixture.h"

namespace sweep::predict {
namespace {

constexpr double kFlops = 500e12, kMemory = 2e12;

Trial with_experts(const char* model, i64 nodes, i64 ep) {
  Trial t = laid_out(model, nodes, 8 * nodes, 1, 1, 1, 1, 1);
  t.ep = ep;
  return t;
}

Layout layout_of(const Trial& t, const char* profile) {
  Layout out;
  make_layout(t, built_in(profile), out);
  return out;
}

double exchanged(const Trial& t, const char* profile) {
  const auto h = *shape::find_hardware(t.hardware);
  return expert_exchange(layout_of(t, profile), built_in(profile).facts, h, 8);
}

ExpertTime time_of(const Trial& t, const char* profile) {
  return expert_time(layout_of(t, profile), built_in(profile), kFlops, kMemory);
}

// 4,096 tokens of 8 rows of 4,096 bytes, four times.
TEST(ExpertExchange, OnlyRowsThatLeaveTheNodeCrossTheNetwork) {
  const double rows = 4 * 4096.0 * 8 * 4096;
  EXPECT_DOUBLE_EQ(exchanged(with_experts("qwen3-30b-a3b", 1, 8), "megatron"), rows * 7 / 8 / 450e9);
  EXPECT_DOUBLE_EQ(exchanged(with_experts("qwen3-30b-a3b", 2, 16), "megatron"),
                   rows * 7 / 16 / 450e9 + rows / 2 / 50e9);
}

// Published of such a layer: 2.7 ms (docs/measurements/2026-11-28-expert-times.md).
TEST(ExpertExchange, AFlexibleDispatcherSendsATokenOnceToANode) {
  const double rows = 4 * 4096.0 * 8 * 4096, hit = 1 - 1 / 256.0;
  const double seconds = exchanged(with_experts("qwen3-30b-a3b", 2, 16), "megatron-flex");
  EXPECT_DOUBLE_EQ(seconds, rows * 7 / 8 / 450e9 + rows / 8 * hit / 50e9);
  EXPECT_NEAR(seconds, 2.38e-3, 0.01e-3);
}

// DeepSeek-V3 takes a token's experts from four of eight groups: of three other nodes with two groups each 2.36 have one.
TEST(ExpertExchange, GroupsLimitTheNodesOfAToken) {
  const double rows = 4 * 4096.0 * 8 * 7168 * 2;
  EXPECT_NEAR(exchanged(with_experts("deepseek-v3", 4, 32), "megatron-flex"),
              rows * 7 / 8 / 450e9 + rows / 8 * 3 * (11.0 / 14) / 50e9, 1e-9);
}

TEST(ExpertTime, CountsPassesOfRowsAndKernelsOfEachExpert) {
  const Trial t = with_experts("qwen3-30b-a3b", 1, 8);
  const double row_bytes = 4096.0 * 8 * 2048 * 2, kernels = 16 * 6;
  EXPECT_DOUBLE_EQ(time_of(t, "megatron").gpu, 18 * row_bytes / kMemory + kernels * 2e-6);
  EXPECT_DOUBLE_EQ(time_of(t, "megatron").host, 0.92 * 0.00317 + kernels * 5e-6);
  EXPECT_LT(time_of(t, "megatron-flex").gpu, time_of(t, "megatron").gpu);
  EXPECT_DOUBLE_EQ(time_of(t, "fsdp2").gpu, 6 * row_bytes / kMemory) << "not counted there";
  EXPECT_EQ(time_of(laid_out("llama3-8b", 1, 8, 1, 1, 1, 1, 1), "megatron").gpu, 0);
}

// Biases of gpt-oss's experts, times the probability, are added in fp32, expert by expert.
TEST(ExpertTime, BiasesOfExpertsAreAddedInOperatorsOfTheirOwn) {
  Trial t = with_experts("gpt-oss-120b", 1, 8);
  const double with = time_of(t, "megatron").gpu;
  t.spec.linear_bias = false;
  EXPECT_NEAR(with - time_of(t, "megatron").gpu, 68 * 4096.0 * 4 * 2880 / kMemory, 1e-12);
}

// 32 experts with 128 rows each: weights are read twice, and their fp32 gradients read and written.
TEST(ExpertTime, FewRowsWaitForWeights) {
  Trial t = with_experts("deepseek-v3", 1, 8);
  t.seq_len = 512;
  const double row_bytes = 512.0 * 8 * 7168 * 2, parameters = 32 * 3.0 * 7168 * 2048;
  const double pass = 2 * 8 * 3 * 7168.0 * 2048 * 512 / kFlops;
  EXPECT_NEAR(time_of(t, "megatron").gpu - 18 * row_bytes / kMemory - 32 * 6 * 2e-6,
              2 * (2 * parameters / kMemory - pass) + 8 * parameters / kMemory - pass, 1e-9);
}

}  // namespace
}  // namespace sweep::predict
