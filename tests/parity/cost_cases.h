// CostCase: a product of strategies whose cost is compared with the formulas, by name, degrees and what it changes of a tiny
// trial.
#pragma once
#include <ostream>
#include <vector>

#include "tests/parity/layouts.h"

namespace sweep::testing {

struct Degrees {
  i64 dp = 1, tp = 1, pp = 1, cp = 1, ep = 1;
};
struct CostCase {
  const char* name;
  Degrees degrees;
  void (*change)(Trial&);
};
inline void PrintTo(const CostCase& c, std::ostream* out) {
  *out << c.name;
}

inline void experts(Trial& t) {
  t.spec.family = "mixtral", t.spec.experts = 4, t.spec.experts_per_token = 2;
}
inline void tied(Trial& t) {
  t.spec.family = "qwen2", t.spec.attention_bias = t.spec.tie_embeddings = true;
}
inline void norms_heads(Trial& t) {
  t.spec.family = "qwen3";
}
// A layer without experts, then three with.
inline void deepseek(Trial& t) {
  experts(t);
  t.spec.family = "deepseek_v2", t.spec.kv_lora_rank = 20, t.spec.rope_head_dim = 4, t.spec.v_head_dim = 6;
  t.spec.shared_experts = 2, t.spec.dense_layers = 1, t.spec.dense_intermediate_size = 56;
}
// Queries from a latent too, and a router of sigmoids.
inline void deepseek_v3(Trial& t) {
  deepseek(t);
  t.spec.family = "deepseek_v3", t.spec.q_lora_rank = 12;
}
inline void interleaved(Trial& t) {
  t.schedule = Schedule::kInterleaved, t.vpp = 2;
}
inline void zero_bubble(Trial& t) {
  t.schedule = Schedule::kZeroBubble;
}
// Weights stay gathered from forward to backward.
inline void kept(Trial& t) {
  t.zero = 3, t.reshard_after_forward = false;
}
// Sets one key-value head for all queries, or two.
inline void multi_query(Trial& t) {
  t.spec.kv_heads = 1;
}
inline void grouped_query(Trial& t) {
  t.spec.kv_heads = 2;
}
inline void padded(Trial& t) {
  t.spec.vocab_size = 57, t.vocab_multiple = 4;
}
inline void nothing(Trial&) {}
inline void lora(Trial& t) {
  t.lora_rank = 3;
}
// Whole blocks on each of two tensor-parallel ranks.
inline void quantized(Trial& t) {
  lora(t), t.quantize_base = QuantizeBase::kNf4;
  t.spec.hidden_size = t.spec.intermediate_size = 128, t.spec.head_dim = 32;
}
inline void quantized_experts(Trial& t) {
  quantized(t), experts(t), t.lora_targets = LoraTargets::kAttention;
}
inline void packed(Trial& t) {
  t.packing = true, t.lengths = "uniform 2 9";
}
inline void lora_of(Trial& t, LoraTargets targets) {
  t.lora_rank = 5, t.lora_targets = targets;
}

inline void lora_deepseek(Trial& t) {
  deepseek(t), lora_of(t, LoraTargets::kAttention);
}
inline void lora_deepseek_v3(Trial& t) {
  deepseek_v3(t), lora_of(t, LoraTargets::kAttention);
}

// Adapters and a quantized base, by themselves and with other strategies.
std::vector<CostCase> adapter_costs();

}  // namespace sweep::testing
