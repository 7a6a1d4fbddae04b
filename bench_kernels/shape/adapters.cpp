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

std::vector<AdapterProducts> adapter_products(const Trial& t) {
  const Adapters a = adapters_of(t);
  const ModelSpec& m = t.spec;
  const i64 q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim, h = m.hidden_size;
  if (!a.any()) return {};
  if (m.latent()) {
    const i64 plain = m.heads * (m.head_dim - m.rope_head_dim), values = m.heads * m.v_head_dim;
    return {{a.on_attention_input, h, m.q_lora_rank + m.kv_lora_rank + m.rope_head_dim, Divided::kNothing},
            {1, m.q_lora_rank > 0 ? m.q_lora_rank : h, q, Divided::kOutputs},
            {1, m.kv_lora_rank, plain + values, Divided::kOutputs},
            {1, values, h, Divided::kInputs}};
  }
  const i64 heads = (a.query ? q : 0) + (a.key ? kv : 0) + (a.value ? kv : 0);
  std::vector<AdapterProducts> out;
  if (a.query) out.push_back({a.on_attention_input, h, heads, Divided::kOutputs});
  if (a.attention_out) out.push_back({1, q, h, Divided::kInputs});
  if (!a.mlp) return out;
  out.push_back({a.on_mlp_input, h, a.on_mlp_input * m.intermediate_size, Divided::kOutputs});
  out.push_back({1, m.intermediate_size, h, Divided::kInputs});
  return out;
}

i64 adapter_parameter_count(const Trial& t) {
  i64 columns = 0;
  for (const AdapterProducts& p : adapter_products(t)) columns += p.count * p.in + p.out;
  return t.spec.layers * t.lora_rank * columns;
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
