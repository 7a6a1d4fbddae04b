#include "bench_kernels/shape/count.h"

#include <algorithm>

#include "bench_kernels/shape/adapters.h"
#include "bench_kernels/shape/documents.h"
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
  if (m.experts == 0) return m.layers * mlp_weights(m, m.intermediate_size);
  const i64 dense = std::min(m.dense_layers, m.layers);
  const i64 layer = (chosen + m.shared_experts) * mlp_weights(m, m.intermediate_size) + router_weights(m);
  return dense * mlp_weights(m, m.dense_intermediate_size) + (m.layers - dense) * layer;
}

i64 active_layer_weights(const ModelSpec& m) {
  return m.layers * attention_weights(m) + mlp_weights_of_layers(m, m.experts_per_token);
}

// And sinks of attention.
i64 layer_biases(const ModelSpec& m) {
  i64 n = 0;
  if (m.attention_bias) n += (m.heads + 2 * m.kv_heads) * m.head_dim;
  const i64 of_mlp = (m.swiglu ? 2 : 1) * m.intermediate_size + m.hidden_size;
  if (m.linear_bias) n += m.hidden_size + (m.experts > 0 ? m.experts * of_mlp + m.experts : of_mlp);
  return n + (family_of(m).sinks() ? m.heads : 0);
}

i64 norm_parameters(const ModelSpec& m) {
  return (m.rmsnorm ? 1 : 2) * m.hidden_size;
}

// The norms of a layer: before (and after) each half, of the heads of queries and keys, and of latents.
i64 layer_norms(const ModelSpec& m) {
  return (family_of(m).post_norms() ? 4 : 2) * norm_parameters(m) +
         (family_of(m).qk_norm ? 2 * m.head_dim : 0) + m.kv_lora_rank + m.q_lora_rank;
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
  const i64 layer = attention_weights(m) + layer_biases(m) + layer_norms(m);
  const i64 tables = (m.tie_embeddings ? 1 : 2) * m.vocab_size * m.hidden_size;
  const i64 positions = m.rope ? 0 : m.max_positions * m.hidden_size;
  return m.layers * layer + mlp_weights_of_layers(m, m.experts) + tables + positions + norm_parameters(m);
}

i64 multiplied_parameter_count(const ModelSpec& m) {
  return active_layer_weights(m) + m.vocab_size * m.hidden_size;
}

namespace {

double trained_attention_flops(const ModelSpec& m, double keys) {
  return 3.0 * static_cast<double>(m.layers) * attention_forward_flops(m, keys);
}

// Without attention.
double multiplied_flops(const ModelSpec& m) {
  return 6.0 * static_cast<double>(multiplied_parameter_count(m));
}
double multiplied_flops(const Trial& t) {
  if (t.lora_rank == 0) return multiplied_flops(t.spec);
  return 4.0 * static_cast<double>(multiplied_parameter_count(t.spec)) +
         6.0 * static_cast<double>(adapter_parameter_count(t));
}

// Forward FLOPs that recomputation runs again, without those of adapters.
double repeated_flops(const ModelSpec& m, double keys, Recompute recompute) {
  const double layers = static_cast<double>(m.layers);
  if (recompute == Recompute::kSelective) return layers * attention_forward_flops(m, keys);
  if (recompute == Recompute::kNone) return 0;
  // Every layer once more; the head is not recomputed.
  return 2.0 * static_cast<double>(active_layer_weights(m)) + layers * attention_forward_flops(m, keys);
}

}  // namespace

double model_flops_per_token(const ModelSpec& m, i64 seq_len) {
  return multiplied_flops(m) + trained_attention_flops(m, keys_per_token(m, seq_len));
}

double hardware_flops_per_token(const ModelSpec& m, i64 seq_len, Recompute recompute) {
  return model_flops_per_token(m, seq_len) + repeated_flops(m, keys_per_token(m, seq_len), recompute);
}

double model_flops_per_token(const Trial& t) {
  return multiplied_flops(t) + trained_attention_flops(t.spec, keys_per_token(t));
}

double useful_flops_per_token(const Trial& t) {
  const DocumentCounts counts = document_counts(t);
  return counts.useful_fraction() * multiplied_flops(t) +
         trained_attention_flops(t.spec, counts.keys(t.spec));
}

double hardware_flops_per_token(const Trial& t) {
  const double adapters = static_cast<double>(adapter_parameter_count(t));
  return model_flops_per_token(t) + repeated_flops(t.spec, keys_per_token(t), t.recompute) +
         (t.recompute == Recompute::kFull ? 2.0 * adapters : 0);
}

}  // namespace sweep::shape
