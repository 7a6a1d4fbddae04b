// The texts are what transformers 4.4x and 5.x write for these models, less keys that say nothing of the
// shape.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/expected.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/count.h"
#include "bench_kernels/shape/family.h"
#include "tests/support/error_matchers.h"

namespace sweep::shape {
namespace {

constexpr const char* kLlama31 =
    R"({"architectures":["LlamaForCausalLM"],"attention_bias":false,"hidden_act":"silu",
  "hidden_size":4096,"intermediate_size":14336,"max_position_embeddings":131072,"mlp_bias":false,"model_type":"llama",
  "num_attention_heads":32,"num_hidden_layers":32,"num_key_value_heads":8,"pretraining_tp":1,"rms_norm_eps":1e-05,
  "rope_scaling":{"factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192,
  "rope_type":"llama3"},"rope_theta":500000.0,"tie_word_embeddings":false,"torch_dtype":"bfloat16","vocab_size":128256})";

constexpr const char* kLlama5 = R"({"attention_bias":false,"head_dim":32,"hidden_act":"silu","hidden_size":64,
  "intermediate_size":176,"mlp_bias":false,"model_type":"llama","num_attention_heads":4,"num_hidden_layers":2,
  "num_key_value_heads":2,"pad_token_id":null,"rms_norm_eps":1e-06,"rope_parameters":{"factor":8.0,"high_freq_factor":4.0,
  "low_freq_factor":1.0,"original_max_position_embeddings":8192,"rope_theta":500000.0,"rope_type":"llama3"},
  "tie_word_embeddings":true,"transformers_version":"5.23.0","vocab_size":256})";

constexpr const char* kMistral =
    R"({"architectures":["MistralForCausalLM"],"hidden_act":"silu","hidden_size":4096,
  "intermediate_size":14336,"model_type":"mistral","num_attention_heads":32,"num_hidden_layers":32,
  "num_key_value_heads":8,"rms_norm_eps":1e-05,"rope_theta":10000.0,"sliding_window":4096,"vocab_size":32000})";

constexpr const char* kQwen2 = R"({"architectures":["Qwen2ForCausalLM"],"hidden_act":"silu","hidden_size":896,
  "intermediate_size":4864,"max_window_layers":24,"model_type":"qwen2","num_attention_heads":14,"num_hidden_layers":24,
  "num_key_value_heads":2,"rms_norm_eps":1e-06,"rope_theta":1000000.0,"sliding_window":131072,
  "tie_word_embeddings":true,"use_sliding_window":false,"vocab_size":151936})";

constexpr const char* kQwen3Moe =
    R"({"architectures":["Qwen3MoeForCausalLM"],"attention_bias":false,"decoder_sparse_step":1,"head_dim":128,
  "hidden_act":"silu","hidden_size":2048,"intermediate_size":6144,"max_position_embeddings":40960,"max_window_layers":48,
  "mlp_only_layers":[],"model_type":"qwen3_moe","moe_intermediate_size":768,"norm_topk_prob":true,"num_attention_heads":32,
  "num_experts":128,"num_experts_per_tok":8,"num_hidden_layers":48,"num_key_value_heads":4,"output_router_logits":true,
  "rms_norm_eps":1e-06,"rope_scaling":null,"rope_theta":1000000.0,"router_aux_loss_coef":0.001,"sliding_window":null,
  "tie_word_embeddings":false,"use_sliding_window":false,"vocab_size":151936})";
constexpr const char* kDeepseekV2Lite =
    R"({"architectures":["DeepseekV2ForCausalLM"],"attention_bias":false,"attention_dropout":0.0,"aux_loss_alpha":0.001,
  "ep_size":1,"first_k_dense_replace":1,"hidden_act":"silu","hidden_size":2048,"intermediate_size":10944,"kv_lora_rank":512,
  "max_position_embeddings":163840,"model_type":"deepseek_v2","moe_intermediate_size":1408,"moe_layer_freq":1,"n_group":1,
  "n_routed_experts":64,"n_shared_experts":2,"norm_topk_prob":false,"num_attention_heads":16,"num_experts_per_tok":6,
  "num_hidden_layers":27,"num_key_value_heads":16,"pretraining_tp":1,"q_lora_rank":null,"qk_nope_head_dim":128,
  "qk_rope_head_dim":64,"rms_norm_eps":1e-06,"rope_scaling":{"beta_fast":32,"beta_slow":1,"factor":40,"mscale":0.707,
  "mscale_all_dim":0.707,"original_max_position_embeddings":4096,"type":"yarn"},"rope_theta":10000,"routed_scaling_factor":1.0,
  "scoring_func":"softmax","seq_aux":true,"tie_word_embeddings":false,"topk_group":1,"topk_method":"greedy",
  "v_head_dim":128,"vocab_size":102400})";
constexpr const char* kDeepseekV3 =
    R"({"architectures":["DeepseekV3ForCausalLM"],"attention_bias":false,"ep_size":1,"first_k_dense_replace":3,
  "hidden_act":"silu","hidden_size":7168,"intermediate_size":18432,"kv_lora_rank":512,"max_position_embeddings":163840,
  "model_type":"deepseek_v3","moe_intermediate_size":2048,"moe_layer_freq":1,"n_group":8,"n_routed_experts":256,
  "n_shared_experts":1,"norm_topk_prob":true,"num_attention_heads":128,"num_experts_per_tok":8,"num_hidden_layers":61,
  "num_key_value_heads":128,"num_nextn_predict_layers":1,"q_lora_rank":1536,"qk_nope_head_dim":128,"qk_rope_head_dim":64,
  "rms_norm_eps":1e-06,"rope_scaling":{"beta_fast":32,"beta_slow":1,"factor":40,"mscale":1.0,"mscale_all_dim":1.0,
  "original_max_position_embeddings":4096,"type":"yarn"},"rope_theta":10000,"routed_scaling_factor":2.5,
  "scoring_func":"sigmoid","tie_word_embeddings":false,"topk_group":4,"topk_method":"noaux_tc","v_head_dim":128,
  "vocab_size":129280})";
constexpr const char* kGpt2 =
    R"({"activation_function":"gelu_new","architectures":["GPT2LMHeadModel"],"attn_pdrop":0.1,
  "layer_norm_epsilon":1e-05,"model_type":"gpt2","n_ctx":1024,"n_embd":768,"n_head":12,"n_inner":null,"n_layer":12,
  "n_positions":1024,"vocab_size":50257})";

// The text with one literal replaced; the test fails if it is not there.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

Error error_of(const std::string& text) {
  return error_in(model_from_config_json(text));
}

TEST(ConfigJson, EqualsTheCatalogue) {
  EXPECT_EQ(*model_from_config_json(kLlama31), *find_model("llama3.1-8b"));
  EXPECT_EQ(*model_from_config_json(kMistral), *find_model("mistral-7b"));
  EXPECT_EQ(*model_from_config_json(kQwen2), *find_model("qwen2-0.5b"));
  EXPECT_EQ(*model_from_config_json(kGpt2), *find_model("gpt2"));
  EXPECT_EQ(*model_from_config_json(kQwen3Moe), *find_model("qwen3-30b-a3b"));
  EXPECT_EQ(*model_from_config_json(kDeepseekV2Lite), *find_model("deepseek-v2-lite"));
  EXPECT_EQ(*model_from_config_json(kDeepseekV3), *find_model("deepseek-v3"));
}

TEST(ConfigJson, WhatTheStepHasNotOfDeepseekIsRefusedByName) {
  struct Changed {
    const char *file, *from, *to, *subject;
  };
  for (const auto& [file, from, to, subject] :
       {Changed{kDeepseekV2Lite, "\"norm_topk_prob\":false", "\"norm_topk_prob\":true", "norm_topk_prob"},
        {kDeepseekV2Lite, "\"greedy\"", "\"noaux_tc\"", "topk_method"},
        {kDeepseekV2Lite, "\"softmax\"", "\"sigmoid\"", "scoring_func"},
        {kDeepseekV2Lite, "\"moe_layer_freq\":1", "\"moe_layer_freq\":2", "moe_layer_freq"},
        {kDeepseekV2Lite, "\"num_key_value_heads\":16", "\"num_key_value_heads\":4", "num_key_value_heads"},
        {kDeepseekV2Lite, "\"attention_bias\":false", "\"attention_bias\":true", "attention_bias"},
        {kDeepseekV3, "\"norm_topk_prob\":true", "\"norm_topk_prob\":false", "norm_topk_prob"},
        {kDeepseekV3, "\"sigmoid\"", "\"softmax\"", "scoring_func"},
        {kDeepseekV3, "\"rope_theta\"", "\"rope_interleave\":false,\"rope_theta\"", "rope_interleave"},
        {kDeepseekV3, "\"beta_fast\"", "\"attention_factor\":2,\"beta_fast\"", "attention_factor"}})
    EXPECT_THAT(error_of(with(file, from, to)), IsError(ErrorKind::kUnsupported, subject)) << from;
  EXPECT_THAT(error_of(with(kDeepseekV2Lite, "\"num_experts_per_tok\":6,", "")),
              IsError(ErrorKind::kMissing, "num_experts_per_tok"));
  EXPECT_THAT(error_of(with(kDeepseekV3, "\"qk_rope_head_dim\":64", "\"qk_rope_head_dim\":0")),
              IsError(ErrorKind::kInvalidValue, "rope_head_dim"));
  EXPECT_THAT(error_of(with(kDeepseekV3, "\"topk_group\":4", "\"topk_group\":9")),
              IsError(ErrorKind::kInvalidValue, "groups_per_token"));
  for (const char* dense : {"27", "-1"})
    EXPECT_THAT(error_of(with(kDeepseekV2Lite, "\"first_k_dense_replace\":1",
                              std::string("\"first_k_dense_replace\":") + dense)),
                IsError(ErrorKind::kInvalidValue, "first_k_dense_replace"))
        << dense;
}

TEST(ConfigJson, ExpertsThatTheStepHasOtherwiseAreRefused) {
  for (const auto& [from, to, subject] :
       {std::tuple{"\"norm_topk_prob\":true", "\"norm_topk_prob\":false", "norm_topk_prob"},
        {"\"decoder_sparse_step\":1", "\"decoder_sparse_step\":2", "decoder_sparse_step"},
        {"\"mlp_only_layers\":[]", "\"mlp_only_layers\":[0]", "mlp_only_layers"},
        {"\"attention_bias\":false", "\"attention_bias\":true", "attention_bias"}}) {
    const Error error = error_of(with(kQwen3Moe, from, to));
    EXPECT_EQ(error.kind, ErrorKind::kUnsupported) << from;
    EXPECT_EQ(error.subject, subject);
  }
}

TEST(ConfigJson, NewerRopeParametersHoldTheta) {
  const auto spec = must(model_from_config_json(kLlama5));
  EXPECT_DOUBLE_EQ(spec.rope_theta, 500000.0);
  EXPECT_EQ(spec.rope_scaling, (RopeScaling{8.0, 1.0, 4.0, 8192}));
  EXPECT_EQ(spec.head_dim, 32);
  EXPECT_TRUE(spec.tie_embeddings);
}

TEST(ConfigJson, OlderSpellingOfTheRopeType) {
  EXPECT_EQ(*model_from_config_json(with(kLlama31, "\"rope_type\"", "\"type\"")), *find_model("llama3.1-8b"));
  EXPECT_EQ(model_from_config_json(with(kQwen2, "\"vocab_size\"", "\"rope_scaling\":null,\"vocab_size\"")),
            *find_model("qwen2-0.5b"));
}

TEST(ConfigJson, AbsentKeysTakeTheDefaultOfTheFamily) {
  const auto llama =
      must(model_from_config_json(R"({"model_type":"llama","hidden_size":64,"intermediate_size":128,
      "num_hidden_layers":1,"num_attention_heads":4,"vocab_size":10})"));
  EXPECT_EQ(llama.kv_heads, 4);
  EXPECT_EQ(llama.head_dim, 16);
  EXPECT_DOUBLE_EQ(llama.norm_eps, 1e-6);
  EXPECT_DOUBLE_EQ(llama.rope_theta, 10000.0);
  EXPECT_FALSE(llama.tie_embeddings);
  EXPECT_FALSE(llama.sliding_window.has_value());
  const auto mistral =
      model_from_config_json(R"({"model_type":"mistral","hidden_size":128,"intermediate_size":128,
      "num_hidden_layers":1,"num_attention_heads":16,"vocab_size":10})");
  EXPECT_EQ(mistral->kv_heads, 8);
  EXPECT_EQ(mistral->sliding_window, 4096);
  const auto gpt2 = model_from_config_json(kGpt2);
  EXPECT_TRUE(gpt2->tie_embeddings);
  EXPECT_EQ(gpt2->intermediate_size, 4 * 768);
}

TEST(ConfigJson, ArchitectureStandsInForAnAbsentModelType) {
  EXPECT_EQ(*model_from_config_json(with(kGpt2, "\"model_type\":\"gpt2\",", "")), *find_model("gpt2"));
}

TEST(ConfigJson, SlidingWindowOnlyWhereItIsUsed) {
  EXPECT_FALSE(
      model_from_config_json(with(kMistral, "4096,\"vocab", "null,\"vocab"))->sliding_window.has_value());
  const std::string used = with(kQwen2, "\"use_sliding_window\":false", "\"use_sliding_window\":true");
  EXPECT_FALSE(
      model_from_config_json(used)->sliding_window.has_value());  // all 24 layers are below max_window_layers
  EXPECT_EQ(model_from_config_json(with(used, "\"max_window_layers\":24", "\"max_window_layers\":0"))
                ->sliding_window,
            131072);
  EXPECT_THAT(error_of(with(used, "\"max_window_layers\":24", "\"max_window_layers\":12")),
              IsError(ErrorKind::kUnsupported, "max_window_layers"));
  const std::string two =
      with(with(used, "\"num_hidden_layers\":24", "\"num_hidden_layers\":2"), "\"vocab_size\"",
           "\"layer_types\":[\"sliding_attention\",\"full_attention\"],\"vocab_size\"");
  EXPECT_EQ(model_from_config_json(two)->sliding_window_pattern, 2);
  EXPECT_EQ(model_from_config_json(two)->sliding_window, 131072);
  const std::string full_first =
      with(with(two, "\"num_hidden_layers\":2", "\"num_hidden_layers\":3"), "[\"sliding_attention\",",
           "[\"full_attention\",\"sliding_attention\",");
  EXPECT_THAT(error_of(full_first), IsError(ErrorKind::kUnsupported, "layer_types"));
}

TEST(ConfigJson, UnsupportedFeaturesAreRefusedByName) {
  EXPECT_THAT(error_of(with(kLlama31, "\"rope_type\":\"llama3\"", "\"rope_type\":\"yarn\"")),
              IsError(ErrorKind::kUnsupported, "yarn"));
  EXPECT_THAT(error_of(with(kLlama31, "\"rope_type\":\"llama3\"", "\"type\":\"linear\"")),
              IsError(ErrorKind::kUnsupported, "linear"));
  EXPECT_THAT(error_of(with(kLlama31, "\"low_freq_factor\":1.0,", "")),
              IsError(ErrorKind::kMissing, "low_freq_factor"));
  EXPECT_THAT(error_of(with(kLlama31, "\"silu\"", "\"relu\"")),
              IsError(ErrorKind::kUnsupported, "hidden_act"));
  EXPECT_THAT(error_of(with(kGpt2, "\"gelu_new\"", "\"gelu\"")),
              IsError(ErrorKind::kUnsupported, "activation_function"));
  EXPECT_THAT(error_of(with(kLlama31, "\"attention_bias\":false", "\"attention_bias\":true")),
              IsError(ErrorKind::kUnsupported, "attention_bias"));
  EXPECT_THAT(error_of(with(kLlama31, "\"mlp_bias\":false", "\"mlp_bias\":true")),
              IsError(ErrorKind::kUnsupported, "mlp_bias"));
  EXPECT_THAT(error_of(with(kLlama31, "\"model_type\":\"llama\"", "\"model_type\":\"deepseek_v4\"")),
              IsError(ErrorKind::kUnsupported, "model_type"));
  EXPECT_THAT(error_of(with(kLlama31, "\"mlp_bias\":false", "\"num_local_experts\":8")),
              IsError(ErrorKind::kUnsupported, "num_local_experts"));
  EXPECT_THAT(error_of(with(kGpt2, "\"n_ctx\":1024", "\"add_cross_attention\":true")),
              IsError(ErrorKind::kUnsupported, "add_cross_attention"));
}

TEST(ConfigJson, HostileTextIsRefusedWithASentence) {
  EXPECT_THAT(error_of(""), IsError(ErrorKind::kInvalidValue));
  EXPECT_THAT(error_of("[]"), IsError(ErrorKind::kInvalidValue));
  EXPECT_THAT(error_of("{}"), IsError(ErrorKind::kMissing, "model_type"));
  EXPECT_THAT(error_of(std::string(100, '[')), IsError(ErrorKind::kInvalidValue));
  EXPECT_THAT(error_of("{\"a\":\"" + std::string(2 << 20, 'x') + "\"}"), IsError(ErrorKind::kInvalidValue));
  EXPECT_THAT(error_of(with(kGpt2, "\"n_layer\":12", "\"n_layer\":\"12\"")),
              IsError(ErrorKind::kInvalidValue, "n_layer"));
  EXPECT_THAT(error_of(with(kGpt2, "\"n_layer\":12", "\"n_layer\":-12")),
              IsError(ErrorKind::kInvalidValue, "layers"));
  EXPECT_THAT(error_of(with(kGpt2, "\"n_layer\":12", "\"n_layer\":18446744073709551615")),
              IsError(ErrorKind::kInvalidValue, "n_layer"));
  EXPECT_THAT(error_of(with(kGpt2, "\"n_layer\":12,", "")), IsError(ErrorKind::kMissing, "n_layer"));
  EXPECT_THAT(error_of(with(kGpt2, "1e-05", "1e999")), IsError(ErrorKind::kInvalidValue));
  EXPECT_THAT(error_of(with(kGpt2, "1e-05", "-1")), IsError(ErrorKind::kInvalidValue, "norm_eps"));
  EXPECT_THAT(error_of(with(kGpt2, "\"gelu_new\"", "\"\xff\xfe\"")), IsError(ErrorKind::kInvalidValue));
  EXPECT_THAT(error_of(with(kLlama31, "\"rope_scaling\":{", "\"rope_scaling\":7,\"x\":{")),
              IsError(ErrorKind::kInvalidValue, "rope_scaling"));
}

TEST(ConfigJson, GemmaOfTheFirstGenerationAndNoLaterOne) {
  const std::string text =
      R"({"model_type":"gemma","head_dim":256,"hidden_act":"gelu","hidden_size":2048,"intermediate_size":16384,
          "num_attention_heads":8,"num_hidden_layers":18,"num_key_value_heads":1,"rms_norm_eps":1e-06,
          "rope_theta":10000.0,"vocab_size":256000})";
  const auto spec = must(model_from_config_json(text));
  EXPECT_EQ(spec, *find_model("gemma-2b"));
  EXPECT_EQ(parameter_count(spec), 2506172416);
  EXPECT_EQ(parameter_count(*find_model("gemma-7b")), 8537680896);
  std::string later = text;
  later.replace(later.find("gemma"), 5, "gemma2");
  EXPECT_FALSE(model_from_config_json(later));
  std::string other = text;
  other.replace(other.find("gelu"), 4, "relu");
  EXPECT_FALSE(model_from_config_json(other));
}

// The released file: a model of text and images, whose text part leaves out what is the default.
TEST(ConfigJson, Gemma3) {
  const std::string text =
      R"({"model_type":"gemma3","vision_config":{"model_type":"siglip_vision_model"},"text_config":{"hidden_size":2560,
          "intermediate_size":10240,"model_type":"gemma3_text","num_hidden_layers":34,
          "rope_scaling":{"factor":8.0,"rope_type":"linear"},"sliding_window":1024}})";
  const auto spec = must(model_from_config_json(text));
  EXPECT_EQ(spec, *find_model("gemma3-4b"));
  const std::string types = "\"sliding_attention\",\"sliding_attention\",\"sliding_attention\",";
  const std::string small =
      R"({"model_type":"gemma3_text","head_dim":256,"hidden_size":1152,"intermediate_size":6912,"num_attention_heads":4,
          "num_hidden_layers":7,"num_key_value_heads":1,"query_pre_attn_scalar":168,"sliding_window":512,
          "rope_parameters":{"full_attention":{"factor":4.0,"rope_theta":500000.0,"rope_type":"linear"},
          "sliding_attention":{"rope_theta":30000.0,"rope_type":"default"}},"vocab_size":262144,"layer_types":[)" +
      types + types.substr(0, 40) + R"("full_attention","sliding_attention"]})";
  const auto newer = must(model_from_config_json(small));
  EXPECT_EQ(newer.sliding_window_pattern, 6);
  EXPECT_EQ(newer.query_pre_attn_scalar, 168);
  EXPECT_EQ(std::tuple(newer.rope_theta, newer.rope_local_theta, newer.rope_linear_factor),
            std::tuple(5e5, 3e4, 4.0));
  const auto refused = [&](const char* from, const char* to, const char* subject) {
    EXPECT_THAT(error_of(with(small, from, to)), IsError(ErrorKind::kUnsupported, subject)) << to;
  };
  refused("\"vocab_size\"", "\"final_logit_softcapping\":30.0,\"vocab_size\"", "final_logit_softcapping");
  refused("\"vocab_size\"", "\"use_bidirectional_attention\":true,\"vocab_size\"",
          "use_bidirectional_attention");
  refused("\"rope_type\":\"linear\"", "\"rope_type\":\"dynamic\"", "dynamic");
  refused("\"vocab_size\"", "\"hidden_activation\":\"silu\",\"vocab_size\"", "hidden_activation");
}

TEST(ConfigJson, GptOss) {
  const std::string text =
      R"({"architectures":["GptOssForCausalLM"],"attention_bias":true,"experts_per_token":4,"head_dim":64,
          "hidden_act":"silu","hidden_size":2880,"intermediate_size":2880,"model_type":"gpt_oss",
          "num_attention_heads":64,"num_experts_per_tok":4,"num_hidden_layers":24,"num_key_value_heads":8,
          "num_local_experts":32,"output_router_logits":false,"quantization_config":{"quant_method":"mxfp4"},
          "rms_norm_eps":1e-05,"rope_scaling":{"beta_fast":32.0,"beta_slow":1.0,"factor":32.0,
          "original_max_position_embeddings":4096,"rope_type":"yarn","truncate":false},"rope_theta":150000,
          "router_aux_loss_coef":0.9,"sliding_window":128,"swiglu_limit":7.0,"vocab_size":201088})";
  const auto spec = must(model_from_config_json(text));
  EXPECT_EQ(spec, *find_model("gpt-oss-20b"));
  const auto refused = [&](const char* from, const char* to, const char* subject) {
    EXPECT_THAT(error_of(with(text, from, to)), IsError(ErrorKind::kUnsupported, subject)) << to;
  };
  refused("\"swiglu_limit\":7.0", "\"swiglu_limit\":6.0", "swiglu_limit");
  refused("\"attention_bias\":true", "\"attention_bias\":false", "attention_bias");
}

// As transformers reads it: without rope_parameters gpt-oss has YaRN, with others than YaRN's it has none.
TEST(ConfigJson, GptOssHasItsYarnWhereNothingElseIsSaid) {
  const auto read = [](const char* rope) {
    return *model_from_config_json(
        std::string(R"({"model_type":"gpt_oss","num_hidden_layers":2,"hidden_size":64,"intermediate_size":48,
            "num_attention_heads":4,"num_key_value_heads":2,"vocab_size":256)") +
        rope + "}");
  };
  EXPECT_EQ(read("").yarn->factor, 32);
  EXPECT_EQ(read(R"(,"rope_scaling":null)").yarn->factor, 32);
  EXPECT_FALSE(read(R"(,"rope_parameters":{"rope_type":"default","rope_theta":150000})").yarn);
  EXPECT_FALSE(read(R"(,"rope_parameters":{"rope_theta":150000})").yarn);
}

TEST(Completed, WindowsHaveOneForm) {
  ModelSpec m = *find_model("tiny-gemma3");
  const auto with_pattern = [&](i64 pattern, i64 layers = 6) {
    ModelSpec changed = m;
    changed.sliding_window_pattern = pattern, changed.layers = layers;
    return *completed(changed);
  };
  EXPECT_EQ(with_pattern(3, 2).sliding_window_pattern, 0) << "all layers have the window";
  EXPECT_FALSE(with_pattern(1).sliding_window) << "none has it";
  EXPECT_EQ(with_pattern(1).rope_local_theta, 0);
  ModelSpec even = m;
  even.rope_local_theta = even.rope_theta = 1e4, even.rope_linear_factor = 1;
  EXPECT_EQ(completed(even)->rope_local_theta, 0) << "the same positions";
  ModelSpec linear = even, scaled = even, yarn = even;
  linear.rope_linear_factor = 8, scaled.rope_scaling = RopeScaling{8, 1, 4, 8192};
  yarn.yarn = YarnScaling{.factor = 32};
  for (const ModelSpec& each : {linear, scaled, yarn})
    EXPECT_EQ(completed(each)->rope_local_theta, 1e4) << "only those of full attention are stretched";
  m.query_pre_attn_scalar = m.head_dim;
  EXPECT_EQ(with_pattern(3), *find_model("tiny-gemma3"));
  m.sliding_window.reset();
  EXPECT_THAT(completed(m).error(), IsError(ErrorKind::kInvalidValue, "sliding_window_pattern"));
}

TEST(Family, EachIsListedOnceAndFoundByItsName) {
  std::set<std::string_view> names;
  std::map<std::string_view, decltype(Family::read)> architectures;
  for (const Family* family : all_families()) {
    EXPECT_TRUE(names.insert(family->name).second) << family->name;
    const auto [first, is_new] = architectures.emplace(family->architecture, family->read);
    EXPECT_TRUE(is_new || first->second == family->read) << family->name << ": its keys tell which it is";
    EXPECT_EQ(find_family(family->name), family);
    EXPECT_TRUE(family->read) << family->name;
  }
  EXPECT_EQ(find_family("imported: mine"), nullptr);
}

}  // namespace
}  // namespace sweep::shape
