// The model catalogue: dimensions as published in each model's config.json.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "base/expected.h"
#include "bench_kernels/shape/catalogue.h"

namespace sweep::shape {
namespace {

ModelSpec decoder(const char* family, i64 layers, i64 hidden, i64 heads, i64 kv_heads, i64 intermediate,
                  i64 vocab) {
  ModelSpec m;
  m.family = family;
  m.layers = layers;
  m.hidden_size = hidden;
  m.heads = heads;
  m.kv_heads = kv_heads;
  m.intermediate_size = intermediate;
  m.vocab_size = vocab;
  return m;
}

ModelSpec tied(ModelSpec m) {
  m.tie_embeddings = true;
  return m;
}

ModelSpec llama3(i64 layers, i64 hidden, i64 heads, i64 intermediate, std::optional<double> factor = {}) {
  ModelSpec m = decoder("llama", layers, hidden, heads, 8, intermediate, 128256);
  m.rope_theta = 500000.0;
  if (factor) m.rope_scaling = RopeScaling{*factor, 1.0, 4.0, 8192};
  return m;
}

ModelSpec llama32(i64 layers, i64 hidden, i64 heads, i64 head_dim) {
  ModelSpec m = tied(llama3(layers, hidden, heads, 8192, 32.0));
  m.head_dim = head_dim;
  return m;
}

ModelSpec mistral(i64 vocab, double theta, std::optional<i64> window) {
  ModelSpec m = decoder("mistral", 32, 4096, 32, 8, 14336, vocab);
  m.rope_theta = theta;
  m.sliding_window = window;
  return m;
}

ModelSpec mixtral(i64 layers, i64 hidden, i64 heads, i64 intermediate, i64 vocab) {
  ModelSpec m = decoder("mixtral", layers, hidden, heads, 8, intermediate, vocab);
  m.rope_theta = 1e6;
  m.experts = 8;
  m.experts_per_token = 2;
  m.router_aux_coef = 0.02;
  return m;
}

ModelSpec qwen2(i64 layers, i64 hidden, i64 heads, i64 kv_heads, i64 intermediate, i64 vocab,
                double eps = 1e-6) {
  ModelSpec m = decoder("qwen2", layers, hidden, heads, kv_heads, intermediate, vocab);
  m.rope_theta = 1e6;
  m.norm_eps = eps;
  return m;
}

ModelSpec qwen3(i64 layers, i64 hidden, i64 heads, i64 intermediate) {
  ModelSpec m = decoder("qwen3", layers, hidden, heads, 8, intermediate, 151936);
  m.head_dim = 128, m.rope_theta = 1e6, m.norm_eps = 1e-6;
  return m;
}

// The auxiliary loss as its authors trained with it (config.json: router_aux_loss_coef).
ModelSpec qwen3_moe(i64 layers, i64 hidden, i64 heads, i64 intermediate) {
  ModelSpec m = qwen3(layers, hidden, heads, intermediate);
  m.family = "qwen3_moe", m.kv_heads = 4;
  m.experts = 128, m.experts_per_token = 8, m.router_aux_coef = 0.001;
  return m;
}

ModelSpec deepseek(const char* family, i64 layers, i64 hidden, i64 heads, i64 dense_intermediate,
                   i64 intermediate, i64 vocab) {
  ModelSpec m = decoder(family, layers, hidden, heads, heads, intermediate, vocab);
  m.kv_lora_rank = 512, m.head_dim = 192, m.rope_head_dim = 64, m.v_head_dim = 128;
  m.norm_eps = 1e-6, m.dense_intermediate_size = dense_intermediate;
  return m;
}

// Without its authors' auxiliary losses, which transformers leaves out too.
ModelSpec deepseek_v2_lite() {
  ModelSpec m = deepseek("deepseek_v2", 27, 2048, 16, 10944, 1408, 102400);
  m.experts = 64, m.experts_per_token = 6, m.shared_experts = 2, m.dense_layers = 1;
  m.yarn = YarnScaling{40, 32, 1, 0.707, 0.707, 4096};
  return m;
}

// Without the module for multi-token prediction.
ModelSpec deepseek_v3() {
  ModelSpec m = deepseek("deepseek_v3", 61, 7168, 128, 18432, 2048, 129280);
  m.q_lora_rank = 1536;
  m.experts = 256, m.experts_per_token = 8, m.shared_experts = 1, m.dense_layers = 3;
  m.expert_groups = 8, m.groups_per_token = 4, m.routed_scaling = 2.5;
  m.yarn = YarnScaling{40, 32, 1, 1, 1, 4096};
  return m;
}

ModelSpec gpt_oss(i64 layers, i64 experts) {
  ModelSpec m = decoder("gpt_oss", layers, 2880, 64, 8, 2880, 201088);
  m.head_dim = 64, m.experts = experts, m.experts_per_token = 4;
  m.sliding_window = 128, m.sliding_window_pattern = 2;
  m.rope_theta = 150000.0, m.yarn = YarnScaling{32, 32, 1, 0, 0, 4096, false};
  return m;
}
ModelSpec tiny_gpt_oss() {
  ModelSpec m = gpt_oss(2, 8);
  m.hidden_size = 64, m.heads = 4, m.kv_heads = 2, m.head_dim = 16, m.intermediate_size = 48,
  m.vocab_size = 256;
  m.experts_per_token = 2, m.sliding_window = 16;
  return m;
}

ModelSpec gpt2(i64 layers, i64 hidden, i64 heads, i64 vocab = 50257, i64 positions = 1024) {
  ModelSpec m = tied(decoder("gpt2", layers, hidden, heads, heads, 4 * hidden, vocab));
  m.max_positions = positions;
  return m;
}

ModelSpec blenderbot(i64 encoder_layers, i64 layers, i64 hidden, i64 heads, i64 vocab) {
  ModelSpec m = tied(decoder("blenderbot", layers, hidden, heads, heads, 4 * hidden, vocab));
  m.encoder_layers = encoder_layers, m.max_positions = 128;
  return m;
}

void add_published(std::vector<NamedModel>& v) {
  const auto hf = [](const char* repository) {
    return fmt::format("huggingface.co/{} config.json", repository);
  };
  v.push_back(
      {"llama2-7b", decoder("llama", 32, 4096, 32, 32, 11008, 32000), hf("meta-llama/Llama-2-7b-hf")});
  v.push_back(
      {"llama2-13b", decoder("llama", 40, 5120, 40, 40, 13824, 32000), hf("meta-llama/Llama-2-13b-hf")});
  v.push_back(
      {"llama2-70b", decoder("llama", 80, 8192, 64, 8, 28672, 32000), hf("meta-llama/Llama-2-70b-hf")});
  v.push_back({"llama3-8b", llama3(32, 4096, 32, 14336), hf("meta-llama/Meta-Llama-3-8B")});
  v.push_back({"llama3-70b", llama3(80, 8192, 64, 28672), hf("meta-llama/Meta-Llama-3-70B")});
  v.push_back({"llama3.1-8b", llama3(32, 4096, 32, 14336, 8.0), hf("meta-llama/Llama-3.1-8B")});
  v.push_back({"llama3.1-70b", llama3(80, 8192, 64, 28672, 8.0), hf("meta-llama/Llama-3.1-70B")});
  v.push_back({"llama3.1-405b", llama3(126, 16384, 128, 53248, 8.0), hf("meta-llama/Llama-3.1-405B")});
  v.push_back({"llama3.2-1b", llama32(16, 2048, 32, 64), hf("meta-llama/Llama-3.2-1B")});
  v.push_back({"llama3.2-3b", llama32(28, 3072, 24, 128), hf("meta-llama/Llama-3.2-3B")});
  v.push_back({"mistral-7b", mistral(32000, 10000.0, 4096), hf("mistralai/Mistral-7B-v0.1")});
  v.push_back({"mistral-7b-v0.3", mistral(32768, 1e6, {}), hf("mistralai/Mistral-7B-v0.3")});
  v.push_back({"mixtral-8x7b", mixtral(32, 4096, 32, 14336, 32000), hf("mistralai/Mixtral-8x7B-v0.1")});
  v.push_back({"qwen2-0.5b", tied(qwen2(24, 896, 14, 2, 4864, 151936)), hf("Qwen/Qwen2-0.5B")});
  v.push_back({"qwen2-1.5b", tied(qwen2(28, 1536, 12, 2, 8960, 151936)), hf("Qwen/Qwen2-1.5B")});
  v.push_back({"qwen2-7b", qwen2(28, 3584, 28, 4, 18944, 152064), hf("Qwen/Qwen2-7B")});
  v.push_back({"qwen2.5-0.5b", tied(qwen2(24, 896, 14, 2, 4864, 151936)), hf("Qwen/Qwen2.5-0.5B")});
  v.push_back({"qwen2.5-1.5b", tied(qwen2(28, 1536, 12, 2, 8960, 151936)), hf("Qwen/Qwen2.5-1.5B")});
  v.push_back({"qwen2.5-3b", tied(qwen2(36, 2048, 16, 2, 11008, 151936)), hf("Qwen/Qwen2.5-3B")});
  v.push_back({"qwen2.5-7b", qwen2(28, 3584, 28, 4, 18944, 152064), hf("Qwen/Qwen2.5-7B")});
  v.push_back({"qwen2.5-14b", qwen2(48, 5120, 40, 8, 13824, 152064, 1e-5), hf("Qwen/Qwen2.5-14B")});
  v.push_back({"qwen2.5-32b", qwen2(64, 5120, 40, 8, 27648, 152064, 1e-5), hf("Qwen/Qwen2.5-32B")});
  v.push_back({"qwen3-0.6b", tied(qwen3(28, 1024, 16, 3072)), hf("Qwen/Qwen3-0.6B")});
  v.push_back({"qwen3-1.7b", tied(qwen3(28, 2048, 16, 6144)), hf("Qwen/Qwen3-1.7B")});
  v.push_back({"qwen3-4b", tied(qwen3(36, 2560, 32, 9728)), hf("Qwen/Qwen3-4B")});
  v.push_back({"qwen3-8b", qwen3(36, 4096, 32, 12288), hf("Qwen/Qwen3-8B")});
  v.push_back({"qwen3-14b", qwen3(40, 5120, 40, 17408), hf("Qwen/Qwen3-14B")});
  v.push_back({"qwen3-32b", qwen3(64, 5120, 64, 25600), hf("Qwen/Qwen3-32B")});
  v.push_back({"qwen3-30b-a3b", qwen3_moe(48, 2048, 32, 768), hf("Qwen/Qwen3-30B-A3B")});
  v.push_back({"qwen3-235b-a22b", qwen3_moe(94, 4096, 64, 1536), hf("Qwen/Qwen3-235B-A22B")});
  v.push_back({"deepseek-v2-lite", deepseek_v2_lite(), hf("deepseek-ai/DeepSeek-V2-Lite")});
  v.push_back({"deepseek-v3", deepseek_v3(), hf("deepseek-ai/DeepSeek-V3")});
  v.push_back({"gpt-oss-20b", gpt_oss(24, 32), hf("openai/gpt-oss-20b")});
  v.push_back({"gpt-oss-120b", gpt_oss(36, 128), hf("openai/gpt-oss-120b")});
  v.push_back({"gpt2", gpt2(12, 768, 12), hf("openai-community/gpt2")});
  v.push_back({"gpt2-medium", gpt2(24, 1024, 16), hf("openai-community/gpt2-medium")});
  v.push_back({"gpt2-large", gpt2(36, 1280, 20), hf("openai-community/gpt2-large")});
  v.push_back({"gpt2-xl", gpt2(48, 1600, 25), hf("openai-community/gpt2-xl")});
}

// DeepSeek-V2-Lite, small: a layer without experts, and shared experts.
ModelSpec tiny_deepseek() {
  ModelSpec m = deepseek("deepseek_v2", 4, 64, 4, 176, 32, 256);
  m.kv_lora_rank = 32, m.head_dim = 24, m.rope_head_dim = 8, m.v_head_dim = 16;
  m.experts = 8, m.experts_per_token = 2, m.shared_experts = 2, m.dense_layers = 1;
  return m;
}

ModelSpec gemma(i64 layers, i64 hidden, i64 heads, i64 kv_heads, i64 intermediate) {
  ModelSpec m = tied(decoder("gemma", layers, hidden, heads, kv_heads, intermediate, 256000));
  m.head_dim = 256, m.norm_eps = 1e-6;
  return m;
}

void add_benchmark_shapes(std::vector<NamedModel>& v) {
  const std::string playbook =
      "The Ultra-Scale Playbook (nanotron's scripts/scaling_benchmarks.py), 2025: no config.json published";
  v.push_back({"playbook-1b", tied(decoder("llama", 16, 2048, 32, 32, 8192, 131072)), playbook});
  v.push_back({"playbook-3b", tied(decoder("llama", 28, 3072, 32, 32, 8192, 131072)), playbook});
  v.push_back({"playbook-8b", decoder("llama", 32, 4096, 32, 32, 14336, 131072), playbook});
  v.push_back({"playbook-80b", decoder("llama", 80, 8192, 64, 64, 28672, 131072), playbook});
  // Lightning's FSDP benchmark counts without the embeddings: 2.95, 4.43 and 8.41 billion parameters.
  const std::string lightning = "Lightning's minGPT presets (lightning-GPT), 2022";
  v.push_back({"gpt2-xxl", gpt2(96, 1600, 25), lightning});
  v.push_back({"gpt2-xxxl", gpt2(100, 1920, 30), lightning});
  v.push_back({"gpt2-4xl", gpt2(190, 1920, 30), lightning});
  const std::string own = "made for CPU runs; no published model";
  v.push_back({"tiny-llama", decoder("llama", 2, 64, 4, 2, 176, 256), own});
  v.push_back({"tiny-mistral", decoder("mistral", 2, 64, 4, 2, 176, 256), own});
  v.push_back({"tiny-qwen2", tied(decoder("qwen2", 2, 64, 4, 2, 176, 256)), own});
  v.push_back({"tiny-qwen3", tied(decoder("qwen3", 2, 64, 4, 2, 176, 256)), own});
  v.push_back({"tiny-deepseek", tiny_deepseek(), own});
  v.push_back({"tiny-gpt-oss", tiny_gpt_oss(), own});
  v.push_back({"tiny-gpt2", gpt2(2, 64, 4, 256, 256), own});
  v.push_back({"tiny-blenderbot", blenderbot(2, 2, 64, 4, 256), own});
  v.push_back({"small-llama", decoder("llama", 4, 256, 8, 8, 688, 4096), own});
  v.push_back({"small-gpt2", gpt2(4, 256, 8, 4096, 1024), own});
}

// With a window of 1,024 tokens in five of six layers. From 4B on positions of the sixth are divided by 8.
ModelSpec gemma3(i64 layers, i64 hidden, i64 heads, i64 kv_heads, i64 intermediate) {
  ModelSpec m = tied(decoder("gemma3_text", layers, hidden, heads, kv_heads, intermediate, 262208));
  m.head_dim = 256, m.norm_eps = 1e-6, m.rope_theta = 1e6, m.rope_local_theta = 1e4, m.rope_linear_factor = 8;
  m.sliding_window = 1024, m.sliding_window_pattern = 6;
  return m;
}
ModelSpec gemma3_1b() {
  ModelSpec m = gemma3(26, 1152, 4, 1, 6912);
  m.vocab_size = 262144, m.sliding_window = 512, m.rope_linear_factor = 1;
  return m;
}
ModelSpec gemma3_27b() {
  ModelSpec m = gemma3(62, 5376, 32, 16, 21504);
  m.head_dim = 128, m.query_pre_attn_scalar = 168;
  return m;
}
ModelSpec tiny_gemma3() {
  ModelSpec m = tied(decoder("gemma3_text", 6, 64, 4, 2, 176, 256));
  m.norm_eps = 1e-6, m.rope_theta = 1e6, m.rope_local_theta = 1e4;
  m.sliding_window = 16, m.sliding_window_pattern = 3;
  return m;
}

ModelSpec t5(i64 layers, i64 hidden, i64 heads, i64 intermediate, i64 vocab = 32128) {
  ModelSpec m = decoder("t5", layers, hidden, heads, heads, intermediate, vocab);
  m.head_dim = 64, m.norm_eps = 1e-6;
  return m;
}

ModelSpec t5_v1_0(i64 layers, i64 hidden, i64 heads, i64 head_dim, i64 intermediate, i64 vocab = 32128) {
  ModelSpec m = tied(t5(layers, hidden, heads, intermediate, vocab));
  m.family = "t5_v1_0", m.head_dim = head_dim;
  return m;
}

void add_encoder_decoders(std::vector<NamedModel>& v) {
  v.push_back({"blenderbot-400m", blenderbot(2, 12, 1280, 32, 8008),
               "huggingface.co/facebook/blenderbot-400M-distill config.json"});
  v.push_back({"blenderbot-3b", blenderbot(2, 24, 2560, 32, 8008),
               "huggingface.co/facebook/blenderbot-3B config.json"});
  v.push_back({"t5-v1_1-base", t5(12, 768, 12, 2048), "huggingface.co/google/t5-v1_1-base config.json"});
  v.push_back({"t5-v1_1-large", t5(24, 1024, 16, 2816), "huggingface.co/google/t5-v1_1-large config.json"});
  v.push_back({"t5-v1_1-xl", t5(24, 2048, 32, 5120), "huggingface.co/google/t5-v1_1-xl config.json"});
  v.push_back({"t5-v1_1-xxl", t5(24, 4096, 64, 10240), "huggingface.co/google/t5-v1_1-xxl config.json"});
  v.push_back({"tiny-t5", t5(2, 64, 4, 176, 256), "made for CPU runs; no published model"});
  v.push_back({"t5-small", t5_v1_0(6, 512, 8, 64, 2048), "huggingface.co/google-t5/t5-small config.json"});
  v.push_back({"t5-base", t5_v1_0(12, 768, 12, 64, 3072), "huggingface.co/google-t5/t5-base config.json"});
  v.push_back({"t5-large", t5_v1_0(24, 1024, 16, 64, 4096), "huggingface.co/google-t5/t5-large config.json"});
  v.push_back({"t5-3b", t5_v1_0(24, 1024, 32, 128, 16384), "huggingface.co/google-t5/t5-3b config.json"});
  v.push_back({"t5-11b", t5_v1_0(24, 1024, 128, 128, 65536), "huggingface.co/google-t5/t5-11b config.json"});
}

void add_gemma(std::vector<NamedModel>& v) {
  v.push_back({"gemma-2b", gemma(18, 2048, 8, 1, 16384), "huggingface.co/google/gemma-2b config.json"});
  v.push_back({"gemma-7b", gemma(28, 3072, 16, 16, 24576), "huggingface.co/google/gemma-7b config.json"});
  // Text models; those from 4B on are the text_config of a model of text and images.
  v.push_back({"gemma3-1b", gemma3_1b(), "huggingface.co/google/gemma-3-1b-pt config.json"});
  v.push_back(
      {"gemma3-4b", gemma3(34, 2560, 8, 4, 10240), "huggingface.co/google/gemma-3-4b-pt config.json"});
  v.push_back(
      {"gemma3-12b", gemma3(48, 3840, 16, 8, 15360), "huggingface.co/google/gemma-3-12b-pt config.json"});
  v.push_back({"gemma3-27b", gemma3_27b(), "huggingface.co/google/gemma-3-27b-pt config.json"});
  v.push_back({"tiny-gemma3", tiny_gemma3(), "made for CPU runs; no published model"});
}

std::vector<NamedModel> build_models() {
  std::vector<NamedModel> v;
  add_published(v);
  add_gemma(v);
  add_encoder_decoders(v);
  add_benchmark_shapes(v);
  for (NamedModel& m : v) {
    auto spec = completed(m.spec);
    if (!spec) throw std::logic_error(m.name + ": " + spec.error().message);
    m.spec = *spec;
  }
  return v;
}

}  // namespace

std::span<const NamedModel> all_models() {
  static const std::vector<NamedModel> models = build_models();
  return models;
}

Expected<ModelSpec> find_model(std::string_view name) {
  for (const NamedModel& m : all_models())
    if (m.name == name) return m.spec;
  std::vector<std::string> names;
  for (const NamedModel& m : all_models()) names.push_back(m.name);
  const auto close = nearest(name, names);
  return fail(
      ErrorKind::kUnknownName, name,
      fmt::format("unknown model '{}'{}; known: {}. Another model: {{config_json: PATH}} or its dimensions",
                  name, close ? fmt::format(" (did you mean '{}'?)", *close) : "", fmt::join(names, ", ")));
}

}  // namespace sweep::shape
