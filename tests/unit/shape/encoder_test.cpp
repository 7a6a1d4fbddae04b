// Encoder-decoder models: counts by hand and as published, what is completed and what is refused.
#include "bench_kernels/shape/encoder.h"

#include <gtest/gtest.h>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/count.h"

namespace sweep::shape {
namespace {

ModelSpec small_encoder_decoder() {
  ModelSpec m;
  m.family = "blenderbot", m.encoder_layers = 2, m.layers = 3, m.hidden_size = 8, m.heads = 4;
  m.intermediate_size = 10, m.vocab_size = 20, m.max_positions = 6, m.tie_embeddings = true;
  return *completed(m);
}

Trial encoding(i64 source, i64 target) {
  Trial t;
  t.spec = small_encoder_decoder(), t.encoder_seq_len = source, t.seq_len = target;
  return t;
}

// transformers 5.23: BlenderbotForConditionalGeneration of these sizes, num_parameters().
TEST(Encoder, ParametersAreThoseOfTransformers) {
  EXPECT_EQ(parameter_count(*find_model("blenderbot-400m")), 364'802'560);
  EXPECT_EQ(parameter_count(*find_model("blenderbot-3b")), 2'696'268'800);
}

// As published: version 1.1, with a head of its own.
TEST(Encoder, ParametersOfT5AreThoseOfTransformers) {
  EXPECT_EQ(parameter_count(*find_model("t5-v1_1-base")), 247'577'856);
  EXPECT_EQ(parameter_count(*find_model("t5-v1_1-large")), 783'150'080);
  EXPECT_EQ(parameter_count(*find_model("t5-v1_1-xl")), 2'849'757'184);
  EXPECT_EQ(parameter_count(*find_model("t5-v1_1-xxl")), 11'135'332'352);
  EXPECT_EQ(parameter_count(*find_model("t5-small")), 60'506'624);
  EXPECT_EQ(parameter_count(*find_model("t5-11b")), 11'307'321'344);
}

TEST(Encoder, CountsByHand) {
  const i64 attention = 4 * 64, mlp = 2 * 80, norm = 16;
  const i64 layer = attention + 4 * 8 + mlp + 10 + 8 + 2 * norm, cross = attention + 4 * 8 + norm;
  const ModelSpec m = small_encoder_decoder();
  EXPECT_EQ(parameter_count(m), 5 * layer + 3 * cross + 2 * norm + 160 + 2 * 6 * 8);
  EXPECT_EQ(multiplied_parameter_count(m), 5 * (attention + mlp) + 3 * attention + 160);
}

// Source and target as long as each other: every weight meets every token.
TEST(Encoder, FlopsOfEqualLengthsAreThoseOfAllLayers) {
  const double flops = 6.0 * static_cast<double>(multiplied_parameter_count(small_encoder_decoder())) +
                       3.0 * (5 + 3) * 4 * 8 * 6;
  EXPECT_DOUBLE_EQ(model_flops_per_token(encoding(0, 6)), flops);
  EXPECT_DOUBLE_EQ(model_flops_per_token(encoding(6, 6)), flops);
}

// Per token of the target two of the source: these pass the encoder and the products of keys and values.
TEST(Encoder, FlopsFollowTheLengthOfTheSource) {
  const double decoder = 3 * (256 + 160) + 3 * 128 + 160, encoder = 2 * (256 + 160) + 3 * 128;
  const double inner = 4 * 8;  // of one query and one key
  const double expected = 6 * (decoder + 2 * encoder) + 3 * inner * (3 * 3 + 3 * 6 + 2 * 2 * 6);
  EXPECT_DOUBLE_EQ(model_flops_per_token(encoding(6, 3)), expected);
  Trial again = encoding(6, 3);
  again.recompute = Recompute::kFull;
  EXPECT_DOUBLE_EQ(hardware_flops_per_token(again) - expected, expected / 3 - 2 * 160);
}

TEST(Encoder, ItsLayersBelongToItsFamilies) {
  ModelSpec m = small_encoder_decoder();
  m.encoder_layers = 0;
  EXPECT_EQ(completed(m)->encoder_layers, 3) << "as many as the decoder's";
  m.kv_heads = 2;
  EXPECT_EQ(completed(m).error().subject, "kv_heads");
  ModelSpec gpt2 = *find_model("tiny-gpt2");
  gpt2.encoder_layers = 1;
  EXPECT_EQ(completed(gpt2).error().subject, "encoder_layers");
  EXPECT_EQ(completed(gpt2).error().kind, ErrorKind::kUnsupported);
}

TEST(Encoder, IsNotCombinedWithWhatHasNoRoomForItsResult) {
  EXPECT_EQ(encoder_objection(encoding(6, 3)), std::nullopt);
  EXPECT_EQ(encoder_length(encoding(0, 3)), 3);
  EXPECT_TRUE(encoder_objection(encoding(7, 3))) << "six learned positions";
  const std::pair<const char*, void (*)(Trial&)> refused[] = {
      {"tp above 1", [](Trial& t) { t.tp = 2; }},
      {"pp above 1", [](Trial& t) { t.pp = 2; }},
      {"cp above 1", [](Trial& t) { t.cp = 2; }},
      {"lengths", [](Trial& t) { t.lengths = "uniform 1 3"; }},
      {"lora_rank", [](Trial& t) { t.lora_rank = 4; }},
      {"cuda_graph", [](Trial& t) { t.cuda_graph = true; }},
      {"precision fp8", [](Trial& t) { t.precision = Precision::kFp8; }},
      {"data", [](Trial& t) { t.data = DataSource::kTokens; }},
      {"optimizer adafactor", [](Trial& t) { t.optimizer = OptimizerKind::kAdafactor; }}};
  for (const auto& [word, change] : refused) {
    Trial t = encoding(6, 3);
    change(t);
    const auto why = encoder_objection(t);
    ASSERT_TRUE(why) << word;
    EXPECT_NE(why->find(word), std::string::npos) << *why;
  }
  Trial decoder;
  decoder.spec = *find_model("tiny-gpt2"), decoder.encoder_seq_len = 8;
  EXPECT_TRUE(encoder_objection(decoder)) << "no encoder reads them";
}

TEST(Encoder, ConfigJsonOfBlenderBot) {
  const auto read = [](const std::string& more) {
    return model_from_config_json(
        R"({"model_type":"blenderbot","vocab_size":8008,"d_model":1280,"encoder_layers":2,"decoder_layers":12,)"
        R"("encoder_attention_heads":32,"decoder_attention_heads":32,"decoder_ffn_dim":5120,"scale_embedding":true)" +
        more + "}");
  };
  EXPECT_EQ(*read(R"(,"encoder_ffn_dim":5120)"), *find_model("blenderbot-400m"));
  EXPECT_EQ(read(R"(,"encoder_ffn_dim":2560)").error().subject, "encoder_ffn_dim");
  EXPECT_EQ(read(R"(,"encoder_ffn_dim":5120,"activation_function":"relu")").error().subject,
            "activation_function");
  EXPECT_EQ(read("").error().subject, "encoder_ffn_dim");
}

TEST(Encoder, ConfigJsonOfT5) {
  const auto read = [](const std::string& more) {
    return model_from_config_json(
        R"({"model_type":"t5","architectures":["T5ForConditionalGeneration"],"vocab_size":32128,"d_model":768,)"
        R"("d_kv":64,"d_ff":2048,"num_heads":12,"num_layers":12,"num_decoder_layers":12,"dropout_rate":0.1,)"
        R"("layer_norm_epsilon":1e-06,"relative_attention_num_buckets":32)" +
        more + "}");
  };
  const std::string gated = R"(,"feed_forward_proj":"gated-gelu")";
  EXPECT_EQ(*read(gated + R"(,"tie_word_embeddings":false)"), *find_model("t5-v1_1-base"));
  EXPECT_TRUE(read(gated)->tie_embeddings);
  EXPECT_EQ(read("")->family, "t5_v1_0") << "its default";
  EXPECT_EQ(read(R"(,"feed_forward_proj":"relu")")->intermediate_size, 2048);
  EXPECT_EQ(read(R"(,"feed_forward_proj":"silu")").error().subject, "feed_forward_proj");
  EXPECT_EQ(read(gated + R"(,"relative_attention_max_distance":64)").error().subject,
            "relative_attention_max_distance");
}

TEST(Encoder, RelativePositionsHaveNoEnd) {
  Trial t;
  t.spec = *find_model("tiny-t5"), t.seq_len = 3000, t.encoder_seq_len = 5000;
  EXPECT_EQ(encoder_objection(t), std::nullopt);
  EXPECT_EQ(t.spec.max_positions, 0);
}

}  // namespace
}  // namespace sweep::shape
