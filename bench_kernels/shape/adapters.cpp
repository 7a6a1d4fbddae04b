#include "bench_kernels/shape/adapters.h"

#include <fmt/format.h>

#include "bench_kernels/shape/family.h"

namespace sweep::shape {
namespace {

bool is_fused(const ModelSpec& m) {
  return !family_of(m).names.fused_query_key_value.empty();
}

}  // namespace

Adapters adapters_of(const Trial& t) {
  Adapters a;
  if (t.lora_rank == 0) return a;
  a.rank = t.lora_rank;
  a.scale = static_cast<double>(t.lora_alpha) / static_cast<double>(t.lora_rank);
  const bool both = t.lora_targets == LoraTargets::kAllLinear;
  const bool attention = both || t.lora_targets == LoraTargets::kAttention;
  a.query = a.value = attention || t.lora_targets == LoraTargets::kQueryValue;
  a.key = a.attention_out = attention;
  a.mlp = both || t.lora_targets == LoraTargets::kMlp;
  a.on_attention_input = is_fused(t.spec) ? (a.query ? 1 : 0) : i64{a.query} + a.key + a.value;
  if (t.spec.latent()) a.on_attention_input = !attention ? 0 : t.spec.q_lora_rank > 0 ? 2 : 1;
  a.on_mlp_input = a.mlp ? (t.spec.swiglu ? 2 : 1) : 0;
  return a;
}

namespace {

// Of latent attention: to the latents, from them (of queries, from their latent or the rows) to the heads, and out.
i64 latent_adapter_columns(const ModelSpec& m, i64 on_input) {
  const i64 heads = m.heads * (2 * m.head_dim - m.rope_head_dim + m.v_head_dim), values = m.heads * m.v_head_dim;
  const i64 latents = m.q_lora_rank + m.kv_lora_rank + m.rope_head_dim;
  const i64 read = m.kv_lora_rank + (m.q_lora_rank > 0 ? m.q_lora_rank : m.hidden_size);
  return on_input * m.hidden_size + latents + read + heads + values + m.hidden_size;
}

}  // namespace

i64 adapter_parameter_count(const Trial& t) {
  const Adapters a = adapters_of(t);
  const ModelSpec& m = t.spec;
  if (a.any() && m.latent()) return m.layers * a.rank * latent_adapter_columns(m, a.on_attention_input);
  const i64 q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim, h = m.hidden_size;
  const i64 outputs = (a.query ? q : 0) + (a.key ? kv : 0) + (a.value ? kv : 0);
  i64 sizes = a.on_attention_input * h + outputs;
  if (a.attention_out) sizes += q + h;
  if (a.mlp) sizes += (a.on_mlp_input + 1) * (h + m.intermediate_size);
  return m.layers * a.rank * sizes;
}

std::optional<std::string> adapters_objection(const Trial& t) {
  if (t.lora_rank == 0) return {};
  const auto with = [&](const std::string& what) {
    return fmt::format("lora_rank {} with {}", t.lora_rank, what);
  };
  const Adapters a = adapters_of(t);
  if (t.spec.experts > 0 && a.mlp)
    return with(fmt::format(
        "lora_targets {}: the linear layers of experts have no adapters yet; take attention or query_value",
        to_string(t.lora_targets)));
  if ((is_fused(t.spec) || t.spec.latent()) && a.query && !a.key)
    return with("lora_targets query_value: this family has values and keys in one tensor; take attention");
  if (t.precision == Precision::kFp8)
    return with("precision fp8: the adapters' products are narrower than fp8 units take; use bf16_master");
  if (t.schedule == Schedule::kZeroBubble)
    return with(
        "schedule zero_bubble: a frozen model has no weight gradients that could fill the waits; use 1f1b");
  return {};
}

}  // namespace sweep::shape
