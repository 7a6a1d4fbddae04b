// The eager model: what sequence parallelism, fp8, written-out attention and pipelining change.
#include <gtest/gtest.h>

#include "orchestrator/predict/predictor.h"
#include "tests/unit/predict/predict_fixture.h"

namespace sweep::predict {
namespace {

constexpr double kTokens = 4096, kLayers = 32, kHidden = 4096, kWide = 14336;

MemoryParts eager_parts(const Trial& t, const char* profile) {
  const TrialPrediction all = predicted(t, built_in(profile));
  EXPECT_FALSE(all.refusal) << profile;
  return all.memory.parts;
}

// Two sequences of 4096 tokens a step, one after the other.
Trial eager_llama(i64 tp, i64 pp, i64 zero) {
  Trial t = laid_out("llama3-8b", 1, 8 / tp / pp, tp, pp, 2, 1, zero);
  t.sp = tp > 1;
  return t;
}

TEST(EagerMemory, WithoutSequenceParallelismTenBytesOfHiddenAreWhole) {
  Trial divided = eager_llama(2, 1, 1), whole = divided;
  whole.sp = false;
  const double more =
      eager_parts(whole, "megatron").activations - eager_parts(divided, "megatron").activations;
  EXPECT_DOUBLE_EQ(more, kTokens * kLayers * 10 * kHidden / 2);
}

TEST(EagerMemory, InputsOfFp8ProductsAreKeptInAByteByTransformerEngine) {
  Trial t = eager_llama(1, 1, 1), fp8 = t;
  fp8.precision = Precision::kFp8;
  const double less = eager_parts(t, "megatron").activations - eager_parts(fp8, "megatron").activations;
  EXPECT_DOUBLE_EQ(less, kTokens * kLayers * (kHidden + kWide));
  EXPECT_DOUBLE_EQ(eager_parts(fp8, "torchtitan").activations, eager_parts(t, "torchtitan").activations);
}

// torchao's float8 replaces nn.Linear: weights stay in fp32 and are reduced so.
TEST(EagerMemory, UnderFsdpFp8KeepsTheStatesOfMixedPrecision) {
  Trial mixed = laid_out("llama3.1-405b", 64, 8, 8, 8, 8, 1, 3), fp8 = mixed;
  mixed.precision = Precision::kBf16Mixed, fp8.precision = Precision::kFp8;
  const auto &a = predicted(mixed, built_in("torchtitan")).memory,
             &b = predicted(fp8, built_in("torchtitan")).memory;
  EXPECT_DOUBLE_EQ(a.need, b.need);
  EXPECT_DOUBLE_EQ(a.parts.gradients, b.parts.gradients);
}

TEST(EagerMemory, WrittenOutAttentionKeepsFiveBytesAScore) {
  Trial flash = eager_llama(1, 1, 1), math = flash;
  math.attention = AttentionKind::kMath;
  const double more = eager_parts(math, "megatron").activations - eager_parts(flash, "megatron").activations;
  EXPECT_DOUBLE_EQ(more, kTokens * kLayers * 5 * kTokens * 32);
}

// The first of two stages: half of the layers and the first table. Sharded over 4 ranks without a pipeline's need to
// keep them, whole with it: gathered weights of 2 bytes, gradients of 4.
TEST(EagerMemory, UnderPipeliningAStageOfFsdpKeepsWeightsAndGradientsWhole) {
  Trial staged = eager_llama(1, 2, 3), unstaged = eager_llama(1, 1, 3);
  staged.precision = unstaged.precision = Precision::kBf16Mixed;
  const auto parts = eager_parts(staged, "torchtitan"), alone = eager_parts(unstaged, "torchtitan");
  const double stage = parts.weights;  // in fp32, over 4 ranks: a parameter is a byte
  EXPECT_DOUBLE_EQ(parts.gradients, 4 * stage);
  EXPECT_GE(parts.gather_buffers, 2 * stage);
  EXPECT_DOUBLE_EQ(alone.gradients, alone.weights);
  EXPECT_LT(alone.gather_buffers, parts.gather_buffers);
}

// The last of four stages reports: a quarter of the layers whatever the head costs, and the second table.
TEST(EagerMemory, TheLastStageReportsForMegatronAndHasItsShareOfTheLayers) {
  const auto parts = eager_parts(eager_llama(1, 4, 1), "megatron");
  const double layer = 2 * kHidden * kHidden + 2 * kHidden * 1024 + 3 * kHidden * kWide;
  EXPECT_DOUBLE_EQ(parts.weights, 2 * (8 * layer + 128256 * kHidden));
  EXPECT_GT(parts.logits, 0);
}

// On a GPU that no one calibrated: codes are read and values written, forward and backward, and again with recomputation.
TEST(UncalibratedGpu, AQuantizedBaseIsDequantizedInEachPass) {
  Trial t = eager_llama(1, 1, 0);
  t.lora_rank = 8, t.dp = t.gpus_per_node = t.grad_accum = 1;
  const auto more_ms = [&](Recompute recompute) {
    Trial plain = t;
    plain.recompute = recompute;
    Trial codes = plain;
    codes.quantize_base = QuantizeBase::kNf4;
    return *roofline().predict(codes, {}).step_ms - *roofline().predict(plain, {}).step_ms;
  };
  const double layer = 2 * kHidden * kHidden + 2 * kHidden * 1024 + 3 * kHidden * kWide;
  const double once = 1e3 * kLayers * layer * 2.516 / (3.35e12 * built_in("sweep").time.bandwidth_share);
  EXPECT_NEAR(more_ms(Recompute::kNone), 2 * once, 1e-3 * once);
  EXPECT_NEAR(more_ms(Recompute::kFull), 3 * once, 1e-3 * once);  // norms are weights too
}

// ZeRO 2 of FSDP2 shards what it keeps: over dp_shard ranks, adapters too, and codes as codes.
TEST(EagerMemory, ZeroTwoShardsAnAdaptersBaseOverItsShardSet) {
  Trial full = eager_llama(1, 1, 2);
  full.dp_shard = 4;
  Trial plain = full;
  plain.lora_rank = 8;
  Trial codes = plain;
  codes.quantize_base = QuantizeBase::kNf4;
  const auto trained = eager_parts(full, "fsdp2"), frozen = eager_parts(plain, "fsdp2"),
             coded = eager_parts(codes, "fsdp2");
  const double layer = 2 * kHidden * kHidden + 2 * kHidden * 1024 + 3 * kHidden * kWide;
  const double tables = 2 * 128256 * kHidden, base = kLayers * layer + tables;
  const double adapters = 4 * frozen.gradients / 2;  // in 16 bits, over the shard set
  EXPECT_GT(adapters, 1e6);
  EXPECT_NEAR(trained.weights, 2 * base / 4, 1e-3 * base);
  EXPECT_NEAR(frozen.weights - trained.weights, 2 * adapters / 4, 1);
  EXPECT_NEAR(coded.weights - 2 * adapters / 4, (0.516 * kLayers * layer + 2 * tables) / 4, 1e-3 * base);
  EXPECT_NEAR(coded.gather_buffers, 0.516 * kLayers * layer + 2 * tables, 1e-3 * base);
  EXPECT_NEAR(frozen.gather_buffers, 2 * base, 1e-3 * base);
}

TEST(EagerMemory, GradientsInBf16TakeTwoBytes) {
  Trial t = eager_llama(1, 1, 1), half = t;
  half.grad_dtype = GradDtype::kBf16;
  EXPECT_DOUBLE_EQ(eager_parts(half, "megatron").gradients, eager_parts(t, "megatron").gradients / 2);
}

}  // namespace
}  // namespace sweep::predict
