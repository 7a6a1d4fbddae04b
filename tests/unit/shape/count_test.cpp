// Parameter totals are those the published checkpoints hold; FLOPs are worked out by hand.
#include "bench_kernels/shape/count.h"

#include <gtest/gtest.h>

#include "bench_kernels/shape/adapters.h"
#include "bench_kernels/shape/catalogue.h"
#include "tests/support/must.h"

namespace sweep::shape {
namespace {

ModelSpec model(const char* name) {
  const auto spec = find_model(name);
  EXPECT_TRUE(spec.has_value()) << name;
  return spec.value_or(ModelSpec{});
}

struct Total {
  const char* model;
  i64 parameters;
};

class PublishedTotal : public ::testing::TestWithParam<Total> {};

TEST_P(PublishedTotal, EqualsTheCheckpoint) {
  EXPECT_EQ(parameter_count(model(GetParam().model)), GetParam().parameters);
}

INSTANTIATE_TEST_SUITE_P(
    Count, PublishedTotal,
    ::testing::Values(
        Total{"llama2-7b", 6738415616}, Total{"llama2-13b", 13015864320}, Total{"llama2-70b", 68976648192},
        Total{"llama3-8b", 8030261248}, Total{"llama3-70b", 70553706496}, Total{"llama3.1-8b", 8030261248},
        Total{"llama3.1-405b", 405853388800}, Total{"llama3.2-1b", 1235814400},
        Total{"llama3.2-3b", 3212749824}, Total{"mistral-7b", 7241732096},
        Total{"mistral-7b-v0.3", 7248023552}, Total{"qwen2-0.5b", 494032768}, Total{"qwen2-1.5b", 1543714304},
        Total{"qwen2-7b", 7615616512}, Total{"qwen2.5-3b", 3085938688}, Total{"qwen2.5-14b", 14770033664},
        Total{"qwen2.5-32b", 32763876352}, Total{"qwen3-0.6b", 596049920}, Total{"qwen3-1.7b", 1720574976},
        Total{"qwen3-4b", 4022468096}, Total{"qwen3-8b", 8190735360}, Total{"qwen3-14b", 14768307200},
        Total{"qwen3-32b", 32762123264}, Total{"qwen3-30b-a3b", 30532122624},
        Total{"qwen3-235b-a22b", 235093634560}, Total{"deepseek-v2-lite", 15706484224},
        Total{"deepseek-v3", 671026404352}, Total{"gpt2", 124439808}, Total{"gpt2-medium", 354823168},
        Total{"gpt2-large", 774030080}, Total{"gpt2-xl", 1557611200}, Total{"gpt2-xxl", 3033169600},
        Total{"gpt2-xxxl", 4524639360}, Total{"gpt2-4xl", 8508197760}, Total{"playbook-3b", 3573722112},
        Total{"playbook-80b", 79995084800}, Total{"gemma3-1b", 999885952}, Total{"gemma3-4b", 3880263168},
        Total{"gpt-oss-20b", 20914757184}, Total{"gpt-oss-120b", 116829156672},
        Total{"gemma3-12b", 11766034176}, Total{"gemma3-27b", 27009346304}),
    [](const auto& info) {
      std::string name = info.param.model;
      for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
      return name;
    });

ModelSpec hand() {  // small enough to count on paper
  ModelSpec m;
  m.family = "llama";
  m.layers = 3;
  m.hidden_size = 8;
  m.heads = 4;
  m.kv_heads = 2;
  m.head_dim = 2;
  m.intermediate_size = 10;
  m.vocab_size = 20;
  return m;
}

// One layer: q 8x8, k and v 8x4 each, o 8x8 = 192; MLP 3 x 80 = 240.
constexpr i64 kLayerWeights = 192 + 240;

TEST(Count, ByHand) {
  EXPECT_EQ(parameter_count(hand()), 3 * (kLayerWeights + 16) + 2 * 160 + 8);
  EXPECT_EQ(multiplied_parameter_count(hand()), 3 * kLayerWeights + 160);
}

TEST(Count, TiedTableCountsOnceInTheTotalAndOnceInTheMatmuls) {
  ModelSpec tied = hand();
  tied.tie_embeddings = true;
  EXPECT_EQ(parameter_count(hand()) - parameter_count(tied), 160);
  EXPECT_EQ(multiplied_parameter_count(hand()), multiplied_parameter_count(tied));
}

TEST(Count, BiasesAndPositionsAreParametersButNotMultiplied) {
  ModelSpec m = hand();
  m.attention_bias = m.linear_bias = true;
  m.rmsnorm = m.rope = m.swiglu = false;
  m.max_positions = 5;
  const i64 layer = 192 + 160 + (8 + 4 + 4) + 8 + (10 + 8) + 2 * 16;
  EXPECT_EQ(parameter_count(m), 3 * layer + 2 * 160 + 5 * 8 + 16);
  EXPECT_EQ(multiplied_parameter_count(m), 3 * (192 + 160) + 160);
}

// A layer without experts, then two with; queries and keys of 6 numbers, of which 2 turn, values of 3.
TEST(Count, LatentAttentionAndSharedExpertsByHand) {
  ModelSpec m = hand();
  m.family = "deepseek_v2", m.kv_heads = 4, m.head_dim = 6, m.rope_head_dim = 2, m.v_head_dim = 3;
  m.kv_lora_rank = 5, m.experts = 7, m.experts_per_token = 2, m.shared_experts = 1;
  m.dense_layers = 1, m.dense_intermediate_size = 11;
  // q 8x24, to the latents 8x7, from them 5x28, o 12x8.
  const i64 attention = 192 + 56 + 140 + 96, expert = 240, router = 56, dense = 3 * 88;
  const i64 norms = 3 * (16 + 5) + 8;
  EXPECT_EQ(parameter_count(m), 3 * attention + dense + 2 * (8 * expert + router) + norms + 2 * 160);
  EXPECT_EQ(multiplied_parameter_count(m), 3 * attention + dense + 2 * (3 * expert + router) + 160);
  EXPECT_DOUBLE_EQ(model_flops_per_token(m, 16) - 6.0 * static_cast<double>(multiplied_parameter_count(m)),
                   3 * 3 * 2.0 * 4 * (6 + 3) * 16);
  const i64 before = parameter_count(m);
  m.q_lora_rank = 9;  // 8x9 and 9x24 for 8x24, and its norm
  EXPECT_EQ(parameter_count(m) - before, 3 * (72 + 216 - 192 + 9));
}

TEST(Count, ModelFlopsAreSixNPlusTwelveLHS) {
  EXPECT_DOUBLE_EQ(model_flops_per_token(hand(), 16),
                   6.0 * (3 * kLayerWeights + 160) + 12.0 * 3 * 4 * 2 * 16);
}

// The second of three layers attends in full.
TEST(Count, LayersWithAWindowMeetItsKeysOnly) {
  ModelSpec m = hand();
  const double layer = 3 * 4.0 * 4 * 2, others = 6.0 * (3 * kLayerWeights + 160);
  m.sliding_window = 5;
  EXPECT_DOUBLE_EQ(model_flops_per_token(m, 16), others + 3 * layer * 5);
  EXPECT_DOUBLE_EQ(model_flops_per_token(m, 4), others + 3 * layer * 4);
  m.sliding_window_pattern = 2;
  EXPECT_DOUBLE_EQ(model_flops_per_token(m, 16), others + layer * (5 + 16 + 5));
  EXPECT_DOUBLE_EQ(hardware_flops_per_token(m, 16, Recompute::kSelective),
                   others + (1 + 1.0 / 3) * layer * (5 + 16 + 5));
}

TEST(Count, RecomputationAddsOnlyToHardwareFlops) {
  const double model_flops = model_flops_per_token(hand(), 16);
  const double attention = 4.0 * 4 * 2 * 16;
  EXPECT_DOUBLE_EQ(hardware_flops_per_token(hand(), 16, Recompute::kNone), model_flops);
  EXPECT_DOUBLE_EQ(hardware_flops_per_token(hand(), 16, Recompute::kSelective), model_flops + 3 * attention);
  EXPECT_DOUBLE_EQ(hardware_flops_per_token(hand(), 16, Recompute::kFull),
                   model_flops + 3 * (2.0 * kLayerWeights + attention));
}

Trial adapted(const ModelSpec& spec, i64 rank, LoraTargets targets) {
  Trial t;
  t.spec = spec, t.lora_rank = rank, t.lora_targets = targets, t.seq_len = 16;
  return t;
}

TEST(Count, AdaptersByHand) {
  const i64 of_queries = 8 + 8, of_keys = 8 + 4, of_out = 8 + 8, of_mlp = 3 * (8 + 10);
  const auto count = [](LoraTargets targets) { return adapter_parameter_count(adapted(hand(), 2, targets)); };
  EXPECT_EQ(count(LoraTargets::kQueryValue), 3 * 2 * (of_queries + of_keys));
  EXPECT_EQ(count(LoraTargets::kAttention), 3 * 2 * (of_queries + 2 * of_keys + of_out));
  EXPECT_EQ(count(LoraTargets::kMlp), 3 * 2 * of_mlp);
  EXPECT_EQ(count(LoraTargets::kAllLinear), count(LoraTargets::kAttention) + count(LoraTargets::kMlp));
  EXPECT_EQ(adapter_parameter_count(adapted(hand(), 0, LoraTargets::kAllLinear)), 0);
}

// The figures that peft's print_trainable_parameters() prints.
TEST(Count, AdaptersOfLlama2AreThoseThatPeftCounts) {
  const ModelSpec llama = model("llama2-7b");
  EXPECT_EQ(adapter_parameter_count(adapted(llama, 8, LoraTargets::kQueryValue)), 4'194'304);
  EXPECT_EQ(adapter_parameter_count(adapted(llama, 8, LoraTargets::kAllLinear)), 19'988'480);
}

// As peft counts q_proj (or q_a_proj and q_b_proj), kv_a_proj_with_mqa, kv_b_proj and o_proj.
TEST(Count, AdaptersOfLatentAttention) {
  const i64 latents = 2048 + 512 + 64, keys_values = 512 + 16 * (128 + 128), out = 16 * 128 + 2048;
  EXPECT_EQ(adapter_parameter_count(adapted(model("deepseek-v2-lite"), 8, LoraTargets::kAttention)),
            27 * 8 * (latents + (2048 + 16 * 192) + keys_values + out));
  const i64 of_queries = 7168 + 1536 + 1536 + 128 * 192;
  EXPECT_EQ(adapter_parameter_count(adapted(model("deepseek-v3"), 4, LoraTargets::kAttention)),
            61 * 4 * (of_queries + 7168 + 512 + 64 + 512 + 128 * 256 + 128 * 128 + 7168));
}

TEST(Count, FlopsOfAFrozenBaseAreFourNAndSixForEachAdapterParameter) {
  const Trial t = adapted(hand(), 2, LoraTargets::kAllLinear);
  Trial all = t, full = t;
  all.lora_rank = 0, full.recompute = Recompute::kFull;
  const double n = 3 * kLayerWeights + 160, adapters = static_cast<double>(adapter_parameter_count(t));
  const double attention = 4.0 * 3 * 4 * 2 * 16;
  EXPECT_DOUBLE_EQ(model_flops_per_token(t), 4 * n + 6 * adapters + 3 * attention);
  EXPECT_DOUBLE_EQ(model_flops_per_token(all), model_flops_per_token(hand(), 16));
  EXPECT_DOUBLE_EQ(hardware_flops_per_token(t), model_flops_per_token(t));
  EXPECT_DOUBLE_EQ(hardware_flops_per_token(full),
                   model_flops_per_token(t) + 3 * 2.0 * kLayerWeights + 2 * adapters + attention);
}

TEST(Adapters, WhatIsNotCombinedSaysWhy) {
  const auto refused = [](auto change) {
    Trial t = adapted(hand(), 4, LoraTargets::kAllLinear);
    change(t);
    return adapters_objection(t).has_value();
  };
  EXPECT_FALSE(refused([](Trial&) {}));
  EXPECT_TRUE(refused([](Trial& t) { t.precision = Precision::kFp8; }));
  EXPECT_TRUE(refused([](Trial& t) { t.schedule = Schedule::kZeroBubble; }));
  EXPECT_TRUE(refused([](Trial& t) { t.spec.experts = 4; }));
  EXPECT_TRUE(refused([](Trial& t) { t.spec.experts = 4, t.lora_targets = LoraTargets::kMlp; }));
  EXPECT_FALSE(refused([](Trial& t) { t.spec.experts = 4, t.lora_targets = LoraTargets::kAttention; }));
  EXPECT_TRUE(refused([](Trial& t) { t.spec.family = "gpt2", t.lora_targets = LoraTargets::kQueryValue; }));
  EXPECT_FALSE(refused([](Trial& t) { t.spec.family = "gpt2"; }));
  EXPECT_FALSE(refused([](Trial& t) { t.spec.kv_lora_rank = 4, t.lora_targets = LoraTargets::kAttention; }));
  EXPECT_TRUE(refused([](Trial& t) { t.spec.kv_lora_rank = 4, t.lora_targets = LoraTargets::kQueryValue; }));
  EXPECT_FALSE(refused([](Trial& t) { t.lora_rank = 0, t.precision = Precision::kFp8; }));
}

TEST(Count, LargestAllowedModelStaysBelow64Bits) {
  ModelSpec m;
  m.layers = 10'000;
  m.hidden_size = 1 << 20;
  m.heads = m.kv_heads = 64;
  m.head_dim = 65536;
  m.intermediate_size = 8 << 20;
  m.vocab_size = 1 << 24;
  const auto spec = must(completed(m));
  EXPECT_GT(parameter_count(spec), 0);
  EXPECT_LT(parameter_count(spec), i64{1} << 62);
}

}  // namespace
}  // namespace sweep::shape
