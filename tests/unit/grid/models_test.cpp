// Models of a grid: from the catalogue, a file or dimensions; several values of a dimension are several models.
#include <gmock/gmock.h>

#include "base/expected.h"
#include "bench_kernels/shape/catalogue.h"
#include "grid_text.h"

namespace sweep::grid {
namespace {

TEST(GridModels, ModelsByFileAndByDimensions) {
  const auto folder =
      std::filesystem::path(::testing::TempDir()) / ("grid-models-" + std::to_string(getpid())) / "my-qwen";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json")
      << R"({"model_type": "qwen2", "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100, "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": true, "max_position_embeddings": 512})";
  const auto grid = must(read_text(R"(
name: t
grid:
  model:
    - gpt2
    - {config_json: my-qwen/config.json}
    - {family: llama, layers: 2, hidden_size: 64, heads: 4, kv_heads: 2, intermediate_size: 96, vocab_size: 100, tie_embeddings: true, name: mine}
    - {layers: 2, hidden_size: 32, heads: 4, intermediate_size: 96, vocab_size: 100}
where: [layers == 2]
)",
                                   folder.parent_path() / "g.yaml"));
  std::vector<Trial> trials;
  ASSERT_TRUE(expand(
      grid, [&](PlanEntry&& e) { return trials.push_back(e.trial), true; }, 0));
  ASSERT_EQ(trials.size(), 3u);
  EXPECT_EQ(trials[0].model, "my-qwen");
  EXPECT_EQ(trials[0].spec.family, "qwen2");
  EXPECT_EQ(trials[1].model, "mine");
  EXPECT_TRUE(trials[1].spec.tie_embeddings);
  EXPECT_EQ(trials[2].model, "llama-2x32-h4-kv4-ff96-v100");
  EXPECT_EQ(trials[2].spec.head_dim, 8);
  std::filesystem::remove_all(folder.parent_path());
}

TEST(GridModels, ModelsThatAreWrong) {
  const auto with = [](const std::string& model) {
    return error_of("name: t\nmodel: " + model + "\ngrid: {tp: [1]}\n");
  };
  EXPECT_THAT(with("{config_json: nowhere/config.json}"),
              AllOf(At(2, 22), IsError(ErrorKind::kNotFound, "nowhere/config.json")));
  EXPECT_THAT(with("{config_json: /dev/zero}"),
              AllOf(At(2, 22), IsError(ErrorKind::kUnreadable, "/dev/zero")));
  EXPECT_THAT(with("{family: llama, layrs: 2}"),
              AllOf(At(2, 24), IsError(ErrorKind::kUnknownName, "layrs"), Suggests("layers")));
  EXPECT_THAT(with("{family: lama, layers: 2}"),
              AllOf(At(2, 8), IsError(ErrorKind::kUnknownName, "lama"), Suggests("llama")));
  EXPECT_THAT(with("{layers: 2, hidden_size: 63, heads: 4, intermediate_size: 9, vocab_size: 10}"),
              AllOf(At(2, 8), IsError(ErrorKind::kInvalidValue, "hidden_size")));
  EXPECT_THAT(with("[gpt2]"), AllOf(At(2, 8), IsError(ErrorKind::kInvalidValue, "model")));
  EXPECT_THAT(error_of("name: t\ngrid: {model: [qwen2-7b, qwen2.5-7b]}\n"),
              AllOf(At(2, 26), IsError(ErrorKind::kConflict, "qwen2.5-7b")));
  EXPECT_THAT(
      with("{name: gpt2, layers: 2, hidden_size: 64, heads: 4, intermediate_size: 9, vocab_size: 10}"),
      AllOf(At(2, 8), IsError(ErrorKind::kConflict, "gpt2")));
}

ModelSpec spec_of(const std::string& model) {
  const auto read = read_text("name: t\nmodel: " + model + "\nbase: {dp: 1}\n", "g.yaml");
  EXPECT_TRUE(read) << read.error().message;
  ModelSpec spec;
  if (read)
    (void)expand(
        *read, [&](PlanEntry&& e) { return spec = e.trial.spec, true; }, 0);
  return spec;
}

TEST(GridModels, WindowsByTheirDimensions) {
  const std::string sizes = "layers: 6, hidden_size: 64, heads: 4, intermediate_size: 176, vocab_size: 256";
  const ModelSpec llama = spec_of("{" + sizes + ", sliding_window: 16, sliding_window_pattern: 3}");
  EXPECT_EQ(llama.window(0), 16);
  EXPECT_EQ(llama.window(2), std::nullopt);
  EXPECT_EQ(llama.full_layers(), 2);
  const ModelSpec full = spec_of("{base: gemma3-12b, sliding_window: 0}");
  EXPECT_EQ(full.full_layers(), 48);
  EXPECT_EQ(full.rope_local_theta, 0) << "all layers have the rotary base of full attention";
  const ModelSpec wider = spec_of("{base: gemma3-27b, sliding_window: 4096, query_pre_attn_scalar: 128}");
  EXPECT_EQ(wider.window(0), 4096);
  EXPECT_EQ(wider.query_pre_attn_scalar, 0) << "as many as head_dim";
  EXPECT_THAT(error_of("name: t\nmodel: {" + sizes + ", sliding_window_pattern: 3}\ngrid: {tp: [1]}\n"),
              AllOf(At(2, 8), IsError(ErrorKind::kInvalidValue, "sliding_window_pattern")));
}

TEST(GridModels, LatentAttentionByItsDimensions) {
  const std::string sizes =
      "layers: 4, hidden_size: 64, heads: 4, head_dim: 24, intermediate_size: 32, vocab_size: 256, ";
  const auto grid =
      must(read_text("name: t\nmodel: {family: deepseek_v2, " + sizes +
                         "kv_lora_rank: 32, rope_head_dim: 8, experts: 8, experts_per_token: 2, "
                         "shared_experts: 2, dense_layers: 1, dense_intermediate_size: 176}\n"
                         "base: {dp: 1}\n",
                     "g.yaml"));
  std::vector<Trial> trials;
  ASSERT_TRUE(expand(
      grid, [&](PlanEntry&& e) { return trials.push_back(e.trial), true; }, 0));
  ASSERT_EQ(trials.size(), 1u);
  ModelSpec expected =
      *shape::find_model("tiny-deepseek");  // its values have head_dim - rope_head_dim numbers
  expected.norm_eps = ModelSpec{}.norm_eps;
  EXPECT_EQ(trials[0].spec, expected);
  const auto with = [&](const std::string& more) {
    return error_of("name: t\nmodel: {" + sizes + more + "}\ngrid: {tp: [1]}\n");
  };
  EXPECT_THAT(with("family: llama, kv_lora_rank: 32"),
              AllOf(At(2, 8), IsError(ErrorKind::kUnsupported, "kv_lora_rank")));
  EXPECT_THAT(with("family: deepseek_v2, rope_head_dim: 8"),
              AllOf(At(2, 8), IsError(ErrorKind::kInvalidValue, "kv_lora_rank")));
  EXPECT_THAT(with("family: deepseek_v2, kv_lora_rank: 32, rope_head_dim: 8, dense_layers: 4"),
              AllOf(At(2, 8), IsError(ErrorKind::kInvalidValue, "dense_layers")));
  EXPECT_THAT(with("family: deepseek_v2, kv_lora_rank: 32, rope_head_dim: 8, dense_layers: 1"),
              AllOf(At(2, 8), IsError(ErrorKind::kInvalidValue, "dense_intermediate_size")));
  EXPECT_THAT(with("family: deepseek_v2, kv_lora_rank: 32, rope_head_dim: 8, kv_heads: 2"),
              AllOf(At(2, 8), IsError(ErrorKind::kInvalidValue, "kv_heads")));
}

TEST(GridModels, DimensionsOfLatentAttentionMayBeAbsentAndGrouped) {
  const ModelSpec dense = spec_of("{base: deepseek-v2-lite, layers: 4, dense_layers: 0, shared_experts: 0}");
  EXPECT_EQ(dense.dense_layers + dense.dense_intermediate_size + dense.shared_experts, 0);
  const ModelSpec ungrouped = spec_of(
      "{base: deepseek-v3, layers: 4, experts: 8, experts_per_token: 2, expert_groups: 4, groups_per_token: "
      "2}");
  EXPECT_EQ(ungrouped.experts / ungrouped.expert_groups, 2);
  // head_dim follows from the sizes, and the values' from it
  EXPECT_EQ(
      spec_of(
          "{family: deepseek_v2, layers: 2, hidden_size: 128, heads: 4, intermediate_size: 32, vocab_size: "
          "256, kv_lora_rank: 32, rope_head_dim: 8}")
          .v_head_dim,
      24);
}

TEST(GridModels, AModelWithOtherDimensions) {
  const auto grid =
      must(read_text("name: t\nmodel: {base: gpt2, vocab_size: 50304}\nbase: {dp: 1}\n", "g.yaml"));
  std::vector<Trial> trials;
  ASSERT_TRUE(expand(
      grid, [&](PlanEntry&& e) { return trials.push_back(e.trial), true; }, 0));
  ASSERT_EQ(trials.size(), 1u);
  ModelSpec expected = *shape::find_model("gpt2");
  expected.vocab_size = 50304;
  EXPECT_EQ(trials[0].spec, expected);
  EXPECT_EQ(trials[0].model, "gpt2-vocab_size-50304");
}

TEST(GridModels, WhatFollowsFromADimensionFollowsTheChangedOne) {
  const auto spec_of = [](const std::string& model) {
    const auto grid = read_text("name: t\nmodel: " + model + "\nbase: {dp: 1}\n", "g.yaml");
    EXPECT_TRUE(grid) << (grid ? "" : grid.error().message);
    ModelSpec spec;
    if (grid)
      (void)expand(
          *grid, [&](PlanEntry&& e) { return spec = e.trial.spec, true; }, 0);
    return spec;
  };
  const ModelSpec wide = spec_of("{base: gpt2, hidden_size: 1536}");
  EXPECT_EQ(wide.head_dim, 128);
  EXPECT_EQ(wide.intermediate_size, 4 * 1536);
  const ModelSpec many = spec_of("{base: gpt2, heads: 24}");
  EXPECT_EQ(many.head_dim, 32);
  EXPECT_EQ(many.kv_heads, 24);
  EXPECT_EQ(spec_of("{base: llama3-8b, heads: 64}").kv_heads,
            8);  // its own number of groups, not a consequence
}

TEST(GridModels, ModelsThatStartFromAnotherAreRefusedWithTheirPlace) {
  const auto with = [](const std::string& model) {
    return error_of("name: t\nmodel: " + model + "\ngrid: {tp: [1]}\n");
  };
  EXPECT_THAT(with("{base: gpt3, layers: 2}"), AllOf(At(2, 15), IsError(ErrorKind::kUnknownName, "gpt3")));
  EXPECT_THAT(with("{base: gpt2, family: llama}"), AllOf(At(2, 21), IsError(ErrorKind::kConflict, "family")));
  EXPECT_THAT(with("{base: gpt2, config_json: x}"), AllOf(At(2, 8), IsError(ErrorKind::kConflict, "base")));
}

TEST(GridModels, SeveralValuesOfADimensionAreSeveralModels) {
  const auto models_of = [](const std::string& model) {
    const auto grid = read_text("name: t\ngrid: {model: " + model + "}\n", "g.yaml");
    EXPECT_TRUE(grid) << (grid ? "" : grid.error().message);
    std::vector<std::string> out;
    if (grid)
      (void)expand(
          *grid, [&](PlanEntry&& e) { return out.push_back(e.trial.model), true; }, 0);
    return out;
  };
  EXPECT_THAT(models_of("{base: gpt2, layers: {range: [12, 36, 12]}}"),
              ::testing::UnorderedElementsAre("gpt2-layers-12", "gpt2-layers-24", "gpt2-layers-36"));
  EXPECT_THAT(models_of("[{base: gpt2, name: wide, layers: [6, 8], hidden_size: {pow2: [1024, 2048]}, heads: "
                        "16}, gpt2-xl]"),
              ::testing::UnorderedElementsAre(
                  "wide-layers-6-hidden_size-1024", "wide-layers-8-hidden_size-1024",
                  "wide-layers-6-hidden_size-2048", "wide-layers-8-hidden_size-2048", "gpt2-xl"));
}

TEST(GridModels, SeveralValuesOfADimensionAreRefusedWithTheirPlace) {
  const auto refused = [](const std::string& text) { return error_of("name: t\n" + text); };
  EXPECT_THAT(refused("model: {base: gpt2, layers: [2, 4]}\nbase: {dp: 1}\n"),
              AllOf(At(2, 8), IsError(ErrorKind::kInvalidValue, "model")));
  EXPECT_THAT(refused("grid: {model: {base: gpt2, layers: []}}\n"),
              IsError(ErrorKind::kInvalidValue, "layers"));
  EXPECT_THAT(refused("grid: {model: {base: gpt2, layers: [2, many]}}\n"), At(2, 40));
  EXPECT_THAT(refused("grid: {model: {base: gpt2, layers: {range: [1, 2000, 1]}}}\n"),
              AllOf(At(2, 28), IsError(ErrorKind::kInvalidValue, "layers")));
  EXPECT_THAT(refused("grid: {model: {base: [gpt2], layers: 2}}\n"), At(2, 22));
  EXPECT_THAT(refused("grid: {micro_batch_size: auto, model: [gpt2]}\nstrategy: grow\n"),
              AllOf(At(3, 1), IsError(ErrorKind::kConflict, "strategy")));
}

TEST(GridModels, EveryWholeNumberOfAModelMayHaveSeveralValuesWithinItsBounds) {
  const std::string sizes = "layers: 6, hidden_size: 64, heads: 4, intermediate_size: 176, vocab_size: 256";
  const auto models = [&](const std::string& more) {
    return expanded("name: t\ngrid: {model: [{name: m, " + sizes + ", " + more + "}]}\n").entries;
  };
  const auto windows = models("sliding_window: [0, 16, 32]");
  ASSERT_EQ(windows.size(), 3u);
  EXPECT_EQ(windows[0].trial.spec.window(0), std::nullopt);
  EXPECT_EQ(windows[2].trial.spec.window(0), 32);
  const auto experts = models("family: mixtral, experts: {pow2: [4, 8]}, experts_per_token: 2");
  ASSERT_EQ(experts.size(), 2u);
  EXPECT_EQ(experts[1].trial.spec.experts, 8);
  EXPECT_EQ(experts[1].trial.model, "m-experts-8");
  const auto wrong = [&](const std::string& more) {
    return error_of("name: t\ngrid: {model: [{name: m, " + sizes + ", " + more + "}]}\n");
  };
  EXPECT_THAT(wrong("kv_heads: [0, 4]"), IsError(ErrorKind::kInvalidValue));
  EXPECT_THAT(wrong("kv_heads: {range: [0, 4, 2]}"), IsError(ErrorKind::kInvalidValue));
  EXPECT_THAT(wrong("kv_heads: [4, 2000000000000]"), IsError(ErrorKind::kInvalidValue));
  EXPECT_THAT(wrong("tie_embeddings: [true, false]"), IsError(ErrorKind::kInvalidValue, "tie_embeddings"));
}

}  // namespace
}  // namespace sweep::grid
