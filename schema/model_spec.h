// ModelSpec: the dimensions of a transformer, decoder-only or encoder-decoder, all that a step, a FLOP count or a trial id needs
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

// RoPE frequency scaling of YaRN (Peng et al. 2023, arXiv 2309.00071), with the two factors that DeepSeek-V2's and V3's
// config.json add. All scores are scaled by mscale_all_dim's factor squared; the rotary part also by the ratio of both,
// squared. 0: the file does not say it.
struct YarnScaling {
  double factor = 40.0;
  double beta_fast = 32.0, beta_slow = 1.0;
  double mscale = 0, mscale_all_dim = 0;
  std::int64_t original_max_positions = 4096;
  bool truncate = true;  // the range that is blended begins and ends at whole numbers
  bool operator==(const YarnScaling&) const = default;
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
  std::int64_t max_positions =
      0;  // rows of the learned position table (gpt2); 0: positions are rotary, or relative
  bool tie_embeddings = false;
  bool attention_bias = false;  // bias on q, k, v (qwen2, gpt2)
  bool linear_bias = false;     // bias on every other linear layer but the head (gpt2, gpt_oss)
  bool rmsnorm = true;          // else LayerNorm with bias
  bool swiglu = true;           // else GELU (tanh form, as gpt2's gelu_new)
  bool rope = true;             // else learned positions, or relative ones (t5)
  double norm_eps = 1e-5;
  double rope_theta = 10000.0;
  std::optional<RopeScaling> rope_scaling;
  std::optional<std::int64_t> sliding_window;  // mistral; nullopt: full causal attention
  // Every so manieth layer has full causal attention and the others the window (Gemma 3, arXiv 2503.19786, section
  // 2.1: 6); 0: all have the window.
  std::int64_t sliding_window_pattern = 0;
  double rope_local_theta = 0;    // rope_theta of the layers with the window; 0: theirs too
  double rope_linear_factor = 1;  // positions of layers with full attention are divided by it
  // Scores are divided by its root; 0: by that of head_dim.
  std::int64_t query_pre_attn_scalar = 0;
  std::int64_t experts = 0;  // experts of a MoE layer (mixtral), each intermediate_size wide; 0: a dense MLP
  std::int64_t experts_per_token = 0;  // top-k
  double router_aux_coef = 0;          // weight of the load-balancing loss
  // Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1). Keys and values of all heads come from
  // kv_lora_rank numbers of a token, queries from q_lora_rank (0: from hidden_size). Of a query's or key's head_dim
  // numbers the last rope_head_dim are turned to their positions, which in keys all heads share. Values have
  // v_head_dim. All 0: the model has another attention.
  std::int64_t kv_lora_rank = 0, q_lora_rank = 0, rope_head_dim = 0, v_head_dim = 0;
  std::optional<YarnScaling> yarn;
  std::int64_t shared_experts = 0;  // experts of a MoE layer that process every token, beside its top-k
  std::int64_t dense_layers = 0;    // first layers of a MoE model that have a dense MLP, of the width below
  std::int64_t dense_intermediate_size = 0;
  // Routing within the best groups of experts only (DeepSeek-V2, section 2.2.2; V3, arXiv 2412.19437, section 2.1.2);
  // 0: experts have no groups.
  std::int64_t expert_groups = 0, groups_per_token = 0;
  double routed_scaling = 1;  // factor of the weights of a token's experts
  // Layers of an encoder, whose result each of `layers` decoder layers reads by cross-attention (Vaswani et al. 2017,
  // arXiv 1706.03762, section 3.2.3); 0: the model is a decoder alone.
  std::int64_t encoder_layers = 0;

  bool has_encoder() const { return encoder_layers > 0; }
  std::int64_t all_layers() const { return encoder_layers + layers; }
  bool latent() const { return kv_lora_rank > 0; }
  bool full_attention(std::int64_t layer) const {
    return !sliding_window || (sliding_window_pattern > 0 && (layer + 1) % sliding_window_pattern == 0);
  }
  std::int64_t full_layers() const {
    if (!sliding_window) return layers;
    return sliding_window_pattern > 0 ? layers / sliding_window_pattern : 0;
  }
  // Number of keys that a query of the layer sees, itself included; nullopt: all before it.
  std::optional<std::int64_t> window(std::int64_t layer) const {
    return full_attention(layer) ? std::nullopt : sliding_window;
  }
  // The mean over layers of a number that layers with full attention and those with the window have.
  double mean_of_layers(double full, double windowed) const {
    if (full_layers() == layers) return full;
    const auto all = static_cast<double>(layers), of_full = static_cast<double>(full_layers());
    return (of_full * full + (all - of_full) * windowed) / all;
  }
  bool has_experts(std::int64_t layer) const { return experts > 0 && layer >= dense_layers; }
  // Width of a dense layer's MLP.
  std::int64_t dense_width() const { return experts > 0 ? dense_intermediate_size : intermediate_size; }
  std::int64_t shared_width() const { return shared_experts * intermediate_size; }
  bool operator==(const ModelSpec&) const = default;
};

}  // namespace sweep
