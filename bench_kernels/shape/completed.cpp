// Fills in what a family implies, and checks the ranges that every model must keep. The bounds leave all
// parameter counts below 2^62.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/fail.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/family.h"
#include "bench_kernels/shape/latent_dimensions.h"

namespace sweep::shape {
namespace {

constexpr i64 kMaxLayers = 10'000, kMaxWidth = i64{1} << 20, kMaxVocab = i64{1} << 24;

Expected<const Family*> known_family(const std::string& name) {
  if (const Family* family = find_family(name)) return family;
  std::vector<std::string> names;
  for (const Family* family : all_families()) names.emplace_back(family->name);
  const auto close = nearest(name, names);
  return fail(ErrorKind::kUnknownName, name, "unknown model family '{}'{}; known: {}", name,
              close ? fmt::format(" (did you mean '{}'?)", *close) : "", family_names());
}

// Sizes that the family has, or has not. A key-value head of latent attention is a query's.
Expected<void> imply_latents(ModelSpec& m, const Family& family) {
  if (!family.latent) {
    for (const auto& [key, size, _] : kLatentDimensions)
      if (m.*size != 0)
        return fail(ErrorKind::kUnsupported, std::string(key),
                    "family '{}' has no {}; use family: deepseek_v2 or deepseek_v3", m.family, key);
    return {};
  }
  if (m.dense_layers == 0) m.dense_intermediate_size = 0;
  if (m.kv_heads != m.heads)
    return fail(ErrorKind::kInvalidValue, "kv_heads",
                "kv_heads {} with {} heads: each head of latent attention has its own keys", m.kv_heads,
                m.heads);
  return {};
}

Expected<void> imply_family(ModelSpec& m) {
  SWEEP_GET(const auto known, known_family(m.family));
  const Family& family = *known;
  m.rmsnorm = family.rms_norm, m.swiglu = family.gated_mlp, m.rope = family.rotary;
  m.attention_bias = family.attention_bias, m.linear_bias = family.linear_bias;
  if (m.kv_heads == 0) m.kv_heads = m.heads;
  if (family.experts && m.experts == 0) m.experts = 8;  // MixtralConfig's default
  if (family.experts && m.experts_per_token == 0) m.experts_per_token = 2;
  if (!family.experts && (m.experts != 0 || m.experts_per_token != 0 || m.router_aux_coef != 0))
    return fail(
        ErrorKind::kUnsupported, m.family,
        "family '{}' has no experts; use family: mixtral, qwen3_moe, gpt_oss, deepseek_v2 or deepseek_v3",
        m.family);
  SWEEP_TRY(imply_latents(m, family));
  if (family.cross_attention && m.encoder_layers == 0) m.encoder_layers = m.layers;
  if (!family.cross_attention && m.encoder_layers != 0)
    return fail(ErrorKind::kUnsupported, "encoder_layers",
                "family '{}' has no encoder; use family: blenderbot, t5 or t5_v1_0", m.family);
  if (family.cross_attention && m.kv_heads != m.heads)
    return fail(ErrorKind::kInvalidValue, "kv_heads",
                "kv_heads {} with {} heads: each head of an encoder-decoder has its own keys", m.kv_heads,
                m.heads);
  if (family.rotary) {
    m.max_positions = 0;
    return {};
  }
  if (family.relative_positions)
    m.max_positions = 0;
  else if (m.max_positions == 0)
    m.max_positions = 1024;
  if (!family.gated_mlp && m.intermediate_size == 0 && m.hidden_size <= kMaxWidth)
    m.intermediate_size = 4 * m.hidden_size;
  m.rope_theta = ModelSpec{}.rope_theta;  // unused: one form for one model, so that its id is one
  m.rope_scaling.reset();
  return {};
}

Expected<void> in_range(const char* name, i64 value, i64 low, i64 high) {
  if (value >= low && value <= high) return {};
  if (value == 0)
    return fail(ErrorKind::kInvalidValue, name, "{} is missing, or 0; give a whole number from {} to {}",
                name, low, high);
  return fail(ErrorKind::kInvalidValue, name, "{} = {} is outside {} .. {}", name, value, low, high);
}

// One form for one model, so that its id is one: no pattern where all layers are of one kind.
Expected<void> complete_windows(ModelSpec& m) {
  if (m.sliding_window_pattern > 0 && !m.sliding_window)
    return fail(ErrorKind::kInvalidValue, "sliding_window_pattern",
                "sliding_window_pattern {} without a sliding_window; give it, or leave the pattern out",
                m.sliding_window_pattern);
  if (m.sliding_window_pattern == 1) m.sliding_window.reset();
  if (m.sliding_window_pattern == 1 || m.sliding_window_pattern > m.layers) m.sliding_window_pattern = 0;
  const bool stretched =
      m.rope_linear_factor != 1 || m.rope_scaling || m.yarn;  // full attention's positions alone
  if (!m.sliding_window || (m.rope_local_theta == m.rope_theta && !stretched)) m.rope_local_theta = 0;
  if (m.query_pre_attn_scalar == m.head_dim) m.query_pre_attn_scalar = 0;
  if (m.query_pre_attn_scalar > 0 && (!m.rope || m.latent() || m.yarn))
    return fail(ErrorKind::kUnsupported, "query_pre_attn_scalar",
                "query_pre_attn_scalar {} other than head_dim {} is of models with plain rotary positions",
                m.query_pre_attn_scalar, m.head_dim);
  return {};
}

Expected<void> check_ranges(const ModelSpec& m) {
  struct Range {
    const char* name;
    i64 value, low, high;
  };
  const Range ranges[] = {
      {"layers", m.layers, 1, kMaxLayers},
      {"encoder_layers", m.encoder_layers, 0, kMaxLayers},
      {"hidden_size", m.hidden_size, 1, kMaxWidth},
      {"heads", m.heads, 1, 65536},
      {"kv_heads", m.kv_heads, 1, 65536},
      {"intermediate_size", m.intermediate_size, 1, 8 * kMaxWidth},
      {"vocab_size", m.vocab_size, 1, kMaxVocab},
      {"max_positions", m.max_positions, m.rope || family_of(m).relative_positions ? 0 : 1, kMaxVocab},
      {"sliding_window", m.sliding_window.value_or(1), 1, i64{1} << 40},
      {"sliding_window_pattern", m.sliding_window_pattern, 0, kMaxLayers},
      {"query_pre_attn_scalar", m.query_pre_attn_scalar, 0, kMaxWidth},
      {"experts", m.experts, 0, 65536},
      {"experts_per_token", m.experts_per_token, m.experts > 0 ? 1 : 0, std::min<i64>(m.experts, 64)},
      {"shared_experts", m.shared_experts, 0, 64},
      {"dense_layers", m.dense_layers, 0, std::max<i64>(0, m.layers - 1)},
      {"dense_intermediate_size", m.dense_intermediate_size, m.dense_layers > 0 ? 1 : 0, 8 * kMaxWidth},
  };
  for (const Range& r : ranges)
    if (auto ok = in_range(r.name, r.value, r.low, r.high); !ok) return ok;
  if (!(m.router_aux_coef >= 0 && m.router_aux_coef <= 10))
    return fail(ErrorKind::kInvalidValue, "router_aux_coef", "router_aux_coef = {} is outside 0 .. 10",
                m.router_aux_coef);
  if (!(m.norm_eps > 0 && m.norm_eps <= 0.1))
    return fail(ErrorKind::kInvalidValue, "norm_eps", "norm_eps = {} is outside 0 (excluded) .. 0.1",
                m.norm_eps);
  if (!(m.rope_theta >= 1 && m.rope_theta <= 1e12))
    return fail(ErrorKind::kInvalidValue, "rope_theta", "rope_theta = {} is outside 1 .. 1e12", m.rope_theta);
  if (!(m.rope_local_theta == 0 || (m.rope_local_theta >= 1 && m.rope_local_theta <= 1e12)))
    return fail(ErrorKind::kInvalidValue, "rope_local_theta", "rope_local_theta = {} is outside 1 .. 1e12",
                m.rope_local_theta);
  if (!(m.rope_linear_factor >= 1 && m.rope_linear_factor <= 1e6))
    return fail(ErrorKind::kInvalidValue, "rope_linear_factor", "rope_linear_factor = {} is outside 1 .. 1e6",
                m.rope_linear_factor);
  if (m.yarn && m.rope_theta == 1)
    return fail(ErrorKind::kInvalidValue, "rope_theta", "rope_theta = 1 with YaRN: no number turns slower");
  return {};
}

Expected<void> check_latents(const ModelSpec& m) {
  const i64 plain = m.head_dim - m.rope_head_dim;
  struct Range {
    const char* name;
    i64 value, low, high;
  };
  const Range ranges[] = {{"kv_lora_rank", m.kv_lora_rank, 1, kMaxWidth},
                          {"q_lora_rank", m.q_lora_rank, 0, kMaxWidth},
                          {"rope_head_dim", m.rope_head_dim, 2, m.head_dim - 2},
                          {"v_head_dim", m.v_head_dim, 1, m.head_dim}};
  for (const Range& r : ranges) SWEEP_TRY(in_range(r.name, r.value, r.low, r.high));
  if (m.rope_head_dim % 2 != 0 || plain % 2 != 0)
    return fail(ErrorKind::kInvalidValue, "rope_head_dim",
                "head_dim {} with rope_head_dim {}: {} turned and {} other numbers, which must be even",
                m.head_dim, m.rope_head_dim, m.rope_head_dim, plain);
  if (!(m.routed_scaling > 0 && m.routed_scaling <= 1000))
    return fail(ErrorKind::kInvalidValue, "routed_scaling",
                "routed_scaling = {} is outside 0 (excluded) .. 1000", m.routed_scaling);
  if (m.expert_groups == 0 && m.groups_per_token == 0) return {};
  SWEEP_TRY(in_range("expert_groups", m.expert_groups, 1, m.experts / 2));
  SWEEP_TRY(in_range("groups_per_token", m.groups_per_token, 1, m.expert_groups));
  if (m.experts % m.expert_groups != 0 ||
      m.experts / m.expert_groups * m.groups_per_token < m.experts_per_token)
    return fail(ErrorKind::kInvalidValue, "expert_groups",
                "{} experts in {} groups, of which a token goes to {}: groups are equal, and their experts "
                "at least experts_per_token {}",
                m.experts, m.expert_groups, m.groups_per_token, m.experts_per_token);
  return {};
}

Expected<void> check_yarn(const YarnScaling& y) {
  const bool factors = y.factor >= 1 && y.factor <= 1e6 && y.mscale >= 0 && y.mscale <= 100 &&
                       y.mscale_all_dim >= 0 && y.mscale_all_dim <= 100;
  if (!factors || !(y.beta_slow > 0 && y.beta_fast > y.beta_slow && y.beta_fast <= 1e6))
    return fail(ErrorKind::kInvalidValue, "yarn",
                "yarn factor {}, beta_fast {}, beta_slow {}, mscale {}, mscale_all_dim {}: it takes 1 <= "
                "factor, 0 < beta_slow < beta_fast, and mscales of at least 0",
                y.factor, y.beta_fast, y.beta_slow, y.mscale, y.mscale_all_dim);
  return in_range("yarn original_max_positions", y.original_max_positions, 1, i64{1} << 40);
}

Expected<void> check_rope_scaling(const RopeScaling& s) {
  if (!(s.factor >= 1 && s.factor <= 1e6))
    return fail(ErrorKind::kInvalidValue, "rope factor", "rope factor = {} is outside 1 .. 1e6", s.factor);
  if (!(s.low_freq_factor > 0 && s.high_freq_factor > s.low_freq_factor && s.high_freq_factor <= 1e6))
    return fail(ErrorKind::kInvalidValue, "rope low_freq_factor",
                "rope low_freq_factor {} and high_freq_factor {} must satisfy 0 < low < high <= 1e6",
                s.low_freq_factor, s.high_freq_factor);
  return in_range("rope original_max_positions", s.original_max_positions, 1, i64{1} << 40);
}

Expected<void> complete_head_dim(ModelSpec& m) {
  if (m.head_dim == 0) {
    if (m.hidden_size % m.heads != 0)
      return fail(ErrorKind::kInvalidValue, "hidden_size",
                  "hidden_size {} % heads {} = {}; give head_dim, or heads that divide hidden_size",
                  m.hidden_size, m.heads, m.hidden_size % m.heads);
    m.head_dim = m.hidden_size / m.heads;
  }
  if (auto ok = in_range("head_dim", m.head_dim, 1, 65536); !ok) return ok;
  if (auto ok = in_range("heads x head_dim", m.heads * m.head_dim, 1, 4 * kMaxWidth); !ok) return ok;
  if (m.heads % m.kv_heads != 0)
    return fail(ErrorKind::kInvalidValue, "heads",
                "heads {} % kv_heads {} = {}; each key-value head serves equally many heads", m.heads,
                m.kv_heads, m.heads % m.kv_heads);
  if (m.rope && m.head_dim % 2 != 0)
    return fail(ErrorKind::kInvalidValue, "head_dim",
                "head_dim {} is odd; rotary positions turn pairs of numbers", m.head_dim);
  return {};
}

}  // namespace

Expected<ModelSpec> completed(ModelSpec m) {
  if (auto ok = imply_family(m); !ok) return tl::unexpected(ok.error());
  SWEEP_TRY(check_ranges(m));
  if (m.rope_scaling) SWEEP_TRY(check_rope_scaling(*m.rope_scaling));
  if (m.yarn) SWEEP_TRY(check_yarn(*m.yarn));
  SWEEP_TRY(complete_head_dim(m));
  SWEEP_TRY(complete_windows(m));
  if (family_of(m).latent && m.v_head_dim == 0) m.v_head_dim = m.head_dim - m.rope_head_dim;
  if (m.latent() || family_of(m).latent) SWEEP_TRY(check_latents(m));
  return m;
}

}  // namespace sweep::shape
