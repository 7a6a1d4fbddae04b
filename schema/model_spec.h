// ModelSpec: the dimensions of a decoder-only transformer, all that a step, a FLOP count or a trial id needs
// of it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace sweep {

// RoPE frequency scaling as Llama 3.1 defines it (Hugging Face rope_type "llama3").
struct RopeScaling {
  double factor = 8.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  std::int64_t original_max_positions = 8192;
  bool operator==(const RopeScaling&) const = default;
};

struct ModelSpec {
  std::string family =
      "llama";  // a Family (bench_kernels/shape/family.h); decides norm, positions, MLP and biases below
  std::int64_t layers = 0;
  std::int64_t hidden_size = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // == heads: MHA; 1: MQA; between: GQA
  std::int64_t head_dim = 0;  // usually hidden_size / heads
  std::int64_t intermediate_size = 0;
  std::int64_t vocab_size = 0;
  std::int64_t max_positions = 0;  // rows of the learned position table (gpt2); 0 with RoPE
  bool tie_embeddings = false;
  bool attention_bias = false;  // bias on q, k, v (qwen2, gpt2)
  bool linear_bias = false;     // bias on every other linear layer (gpt2)
  bool rmsnorm = true;          // else LayerNorm with bias
  bool swiglu = true;           // else GELU (tanh form, as gpt2's gelu_new)
  bool rope = true;             // else learned positions
  double norm_eps = 1e-5;
  double rope_theta = 10000.0;
  std::optional<RopeScaling> rope_scaling;
  std::optional<std::int64_t> sliding_window;  // mistral; nullopt: full causal attention
  std::int64_t experts = 0;  // experts of a MoE layer (mixtral), each intermediate_size wide; 0: a dense MLP
  std::int64_t experts_per_token = 0;  // top-k
  double router_aux_coef = 0;          // weight of the load-balancing loss
  bool operator==(const ModelSpec&) const = default;
};

}  // namespace sweep
