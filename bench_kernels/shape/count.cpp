#include "bench_kernels/shape/count.h"

#include <algorithm>

#include "bench_kernels/shape/adapters.h"
#include "bench_kernels/shape/documents.h"
#include "bench_kernels/shape/encoder.h"
#include "bench_kernels/shape/family.h"

namespace sweep::shape {
namespace {

// DeepSeek-V2, equations 9 to 19 of arXiv 2405.04434.
i64 latent_attention_weights(const ModelSpec& m) {
  const i64 query = m.heads * m.head_dim, plain = m.head_dim - m.rope_head_dim;
  const i64 queries = m.q_lora_rank > 0 ? m.q_lora_rank * (m.hidden_size + query) : m.hidden_size * query;
  const i64 keys_values =
      m.hidden_size * (m.kv_lora_rank + m.rope_head_dim) + m.kv_lora_rank * m.heads * (plain + m.v_head_dim);
  return queries + keys_values + m.heads * m.v_head_dim * m.hidden_size;
}

// Weights of one MLP: a dense layer's, or one expert's.
i64 mlp_weights(const ModelSpec& m, i64 width) {
  return (m.swiglu ? 3 : 2) * m.hidden_size * width;
}

i64 router_weights(const ModelSpec& m) {
  return m.experts * m.hidden_size;
}

// MLP weights of all layers: each multiplies a token, but of the experts only `chosen` of a layer.
i64 mlp_weights_of_layers(const ModelSpec& m, i64 chosen) {
  if (m.experts == 0) return m.all_layers() * mlp_weights(m, m.intermediate_size);
  const i64 dense = std::min(m.dense_layers, m.layers);
  const i64 layer = (chosen + m.shared_experts) * mlp_weights(m, m.intermediate_size) + router_weights(m);
  return dense * mlp_weights(m, m.dense_intermediate_size) + (m.layers - dense) * layer;
}

// Layers with cross-attention.
i64 cross_layers(const ModelSpec& m) {
  return m.has_encoder() ? m.layers : 0;
}

i64 attentions(const ModelSpec& m) {
  return m.all_layers() + cross_layers(m);
}

// And sinks.
i64 attention_biases(const ModelSpec& m) {
  return (m.attention_bias ? (m.heads + 2 * m.kv_heads) * m.head_dim : 0) +
         (m.linear_bias ? m.hidden_size : 0) + (family_of(m).sinks() ? m.heads : 0);
}

// The biases of one MLP: a dense layer's, or one expert's.
i64 biases_of_one_mlp(const ModelSpec& m) {
  return m.linear_bias ? (m.swiglu ? 2 : 1) * m.intermediate_size + m.hidden_size : 0;
}

// Biases of an MLP; with experts, theirs and the router's.
i64 mlp_biases(const ModelSpec& m) {
  if (!m.linear_bias) return 0;
  return m.experts > 0 ? m.experts * (biases_of_one_mlp(m) + 1) : biases_of_one_mlp(m);
}

i64 norm_parameters(const ModelSpec& m) {
  return (m.rmsnorm ? 1 : 2) * m.hidden_size;
}

// The norms of a layer: before (and after) each half, of the heads of queries and keys, and of latents.
i64 layer_norms(const ModelSpec& m) {
  return (family_of(m).post_norms() ? 4 : 2) * norm_parameters(m) +
         (family_of(m).qk_norm ? 2 * m.head_dim : 0) + m.kv_lora_rank + m.q_lora_rank;
}

// Parameters for an encoder: cross-attention of each decoder layer with its norm, the encoder's last norm and its positions.
i64 encoder_decoder_parameters(const ModelSpec& m) {
  if (!m.has_encoder()) return 0;
  return cross_layers(m) * (attention_weights(m) + attention_biases(m) + norm_parameters(m)) +
         norm_parameters(m) + position_elements(m);
}

// Scores and their use of the values, one layer, forward, per token: 2 matmuls x 2 FLOPs x keys x heads x
// head_dim (of the values, v_head_dim where they have their own).
double attention_forward_flops(const ModelSpec& m, double keys) {
  const i64 dims = m.head_dim + (m.latent() ? m.v_head_dim : m.head_dim);
  return 2.0 * static_cast<double>(m.heads) * static_cast<double>(dims) * keys;
}

}  // namespace

i64 attention_weights(const ModelSpec& m) {
  if (m.latent()) return latent_attention_weights(m);
  const i64 q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim;
  return m.hidden_size * (q + 2 * kv) + q * m.hidden_size;
}

i64 parameter_count(const ModelSpec& m) {
  const i64 layer = attention_weights(m) + attention_biases(m) + mlp_biases(m) + layer_norms(m);
  const i64 tables = (m.tie_embeddings ? 1 : 2) * m.vocab_size * m.hidden_size;
  return m.all_layers() * layer + mlp_weights_of_layers(m, m.experts) + tables + position_elements(m) +
         norm_parameters(m) + encoder_decoder_parameters(m);
}

i64 multiplied_parameter_count(const ModelSpec& m) {
  return attentions(m) * attention_weights(m) + mlp_weights_of_layers(m, m.experts_per_token) +
         m.vocab_size * m.hidden_size;
}

namespace {

// A step's work by what a sequence's tokens meet, per token of the decoder. Without an encoder: every weight and
// `keys` keys.
struct Work {
  Work(const ModelSpec& m, double keys)
      : weights(real(multiplied_parameter_count(m) - m.vocab_size * m.hidden_size)) {
    head = real(m.vocab_size * m.hidden_size);
    attention = real(attentions(m)) * attention_forward_flops(m, keys);
  }
  // The encoder has `ratio` tokens for each of the decoder: they pass its layers, and are the keys of cross-attention.
  Work(const Trial& t, double keys) : Work(t.spec, keys) {
    const ModelSpec& m = t.spec;
    if (!m.has_encoder()) return;
    const double length = real(encoder_length(t)), ratio = length / real(t.seq_len);
    const i64 layer = attention_weights(m) + mlp_weights(m, m.intermediate_size);
    const i64 to_keys = 2 * m.hidden_size * m.kv_heads * m.head_dim;
    weights = real(m.layers * (layer + attention_weights(m) - to_keys)) +
              ratio * real(m.encoder_layers * layer + m.layers * to_keys);
    attention = real(m.layers) * (attention_forward_flops(m, keys) + attention_forward_flops(m, length)) +
                ratio * real(m.encoder_layers) * attention_forward_flops(m, length);
  }
  static double real(i64 n) { return static_cast<double>(n); }
  double weights = 0, head = 0, attention = 0;  // weights that multiply a token; forward FLOPs of attention

  double multiplied() const { return 6 * (weights + head); }
  // Forward FLOPs that recomputation runs again, without those of adapters. The head is not recomputed.
  double repeated(Recompute recompute) const {
    if (recompute == Recompute::kNone) return 0;
    return attention + (recompute == Recompute::kFull ? 2 * weights : 0);
  }
};

// FLOPs without attention's.
double multiplied_flops(const Trial& t, const Work& work) {
  if (t.lora_rank == 0) return work.multiplied();
  return 4.0 * (work.weights + work.head) + 6.0 * static_cast<double>(adapter_parameter_count(t));
}

}  // namespace

double model_flops_per_token(const ModelSpec& m, i64 seq_len) {
  const Work work(m, keys_per_token(m, seq_len));
  return work.multiplied() + 3 * work.attention;
}

double hardware_flops_per_token(const ModelSpec& m, i64 seq_len, Recompute recompute) {
  return model_flops_per_token(m, seq_len) + Work(m, keys_per_token(m, seq_len)).repeated(recompute);
}

double model_flops_per_token(const Trial& t) {
  const Work work(t, keys_per_token(t));
  return multiplied_flops(t, work) + 3 * work.attention;
}

double useful_flops_per_token(const Trial& t) {
  const DocumentCounts counts = run_document_counts(t);
  const Work work(t, t.packing ? keys_per_token(t) : counts.keys(t.spec));
  return counts.useful_fraction() * multiplied_flops(t, work) + 3 * work.attention;
}

double hardware_flops_per_token(const Trial& t) {
  const double adapters = static_cast<double>(adapter_parameter_count(t));
  return model_flops_per_token(t) + Work(t, keys_per_token(t)).repeated(t.recompute) +
         (t.recompute == Recompute::kFull ? 2.0 * adapters : 0);
}

}  // namespace sweep::shape
