#include "bench_kernels/shape/config_reader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "bench_kernels/shape/family.h"

namespace sweep::shape {

using nlohmann::json;

std::string clipped(const std::string& s) {
  return s.size() > 60 ? s.substr(0, 57) + "..." : s;
}

void read_activation(ConfigReader& r, const ModelSpec& m, const char* key,
                     std::initializer_list<const char*> supported) {
  const std::string found = r.word(key).value_or(*supported.begin());
  if (std::ranges::find(supported, found) == supported.end())
    r.refuse(ErrorKind::kUnsupported, key,
             fmt::format("{} '{}' is not supported by {}; supported: {}", key, clipped(found), m.family,
                         *supported.begin()));
}

void read_decoder(ConfigReader& r, ModelSpec& m, i64 kv_heads, double norm_eps) {
  m.layers = r.required("num_hidden_layers");
  m.hidden_size = r.required("hidden_size");
  m.heads = r.required("num_attention_heads");
  m.intermediate_size = r.required("intermediate_size");
  if (kv_heads == 0) kv_heads = m.heads;
  m.kv_heads = r.null("num_key_value_heads") ? m.heads : r.integer("num_key_value_heads").value_or(kv_heads);
  m.head_dim = r.integer("head_dim").value_or(0);
  m.tie_embeddings = r.flag("tie_word_embeddings").value_or(false);
  m.norm_eps = r.number("rms_norm_eps").value_or(norm_eps);
  r.only("mlp_bias", false);
}

namespace {

YarnScaling read_yarn(ConfigReader& rope) {
  for (const char* need : {"factor", "original_max_position_embeddings"})
    if (!rope.find(need))
      rope.refuse(ErrorKind::kMissing, need, fmt::format("rope type 'yarn' has no '{}'", need));
  if (rope.find("attention_factor"))
    rope.refuse(ErrorKind::kUnsupported, "attention_factor",
                "'attention_factor' is not supported; mscale and mscale_all_dim are");
  return {
      rope.number("factor").value_or(0),         rope.number("beta_fast").value_or(32),
      rope.number("beta_slow").value_or(1),      rope.number("mscale").value_or(0),
      rope.number("mscale_all_dim").value_or(0), rope.integer("original_max_position_embeddings").value_or(0),
      rope.flag("truncate").value_or(true)};
}

}  // namespace

// rope_scaling (older writers; the type under "rope_type" or "type") or rope_parameters (newer, which hold
// rope_theta).
void read_rope(ConfigReader& r, ModelSpec& m, double theta) {
  m.rope_theta = r.number("rope_theta").value_or(theta);
  r.only("partial_rotary_factor", 1.0);
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const json* j = r.find(key);
    if (!j) continue;
    if (!j->is_object())
      return r.refuse(ErrorKind::kInvalidValue, key, fmt::format("'{}' is not an object", key));
    ConfigReader rope(*j);
    m.rope_theta = rope.number("rope_theta").value_or(m.rope_theta);
    rope.only("partial_rotary_factor", 1.0);
    auto type = rope.word("rope_type");
    if (!type) type = rope.word("type");
    if (type != "yarn") m.yarn.reset();  // a family's own, which holds where nothing is said
    if (type.value_or("default") == "llama3") {
      for (const char* need :
           {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"})
        if (!rope.find(need))
          rope.refuse(ErrorKind::kMissing, need, fmt::format("rope type 'llama3' has no '{}'", need));
      m.rope_scaling =
          RopeScaling{rope.number("factor").value_or(0), rope.number("low_freq_factor").value_or(0),
                      rope.number("high_freq_factor").value_or(0),
                      rope.integer("original_max_position_embeddings").value_or(0)};
    } else if (type == "yarn" && family_of(m).yarn) {
      m.yarn = read_yarn(rope);
    } else if (type.value_or("default") != "default") {
      rope.refuse(ErrorKind::kUnsupported, *type,
                  fmt::format("rope type '{}' is not supported by {}; supported: default, {}", clipped(*type),
                              m.family, family_of(m).yarn ? "llama3, yarn" : "llama3"));
    }
    if (const auto& e = rope.error())
      return r.refuse(e->kind, e->subject, fmt::format("in '{}': {}", key, e->message));
    return;
  }
}

namespace {

// Layers below max_window_layers attend in full.
void read_window_from_layer(ConfigReader& r, ModelSpec& m) {
  if (!r.flag("use_sliding_window").value_or(false) || r.null("sliding_window")) return;
  const i64 from = r.integer("max_window_layers").value_or(28);
  const bool each_layer = r.find("layer_types") != nullptr;
  if (from <= 0 || each_layer) m.sliding_window = r.integer("sliding_window").value_or(4096);
  if (from > 0 && from < m.layers && !each_layer)
    r.refuse(
        ErrorKind::kUnsupported, "max_window_layers",
        fmt::format(
            "'max_window_layers' {} of {} layers mixes sliding and full attention, which is not supported",
            from, m.layers));
}

}  // namespace

void read_layer_types(ConfigReader& r, ModelSpec& m) {
  const json* types = r.find("layer_types");
  if (!types) return;
  if (!types->is_array())
    return r.refuse(ErrorKind::kInvalidValue, "layer_types", "'layer_types' is not a list");
  std::vector<bool> full;  // one entry for each layer
  for (const json& t : *types) {
    if (t != "sliding_attention" && t != "full_attention")
      return r.refuse(ErrorKind::kUnsupported, "layer_types",
                      "'layer_types' names a kind of attention that is not supported");
    full.push_back(t == "full_attention");
  }
  const auto first = std::ranges::find(full, true) - full.begin();
  m.sliding_window_pattern = first < std::ssize(full) ? first + 1 : 0;
  for (i64 layer = 0; layer < std::ssize(full); ++layer)
    if (full[static_cast<std::size_t>(layer)] !=
        (m.sliding_window_pattern > 0 && (layer + 1) % m.sliding_window_pattern == 0))
      return r.refuse(
          ErrorKind::kUnsupported, "layer_types",
          "'layer_types' mixes sliding and full attention otherwise than with full attention in every "
          "so manieth layer, which is not supported");
  if (!m.sliding_window) m.sliding_window_pattern = 0;
}

void read_qwen(ConfigReader& r, ModelSpec& m, i64 kv_heads) {
  read_decoder(r, m, kv_heads, 1e-6);
  read_activation(r, m, "hidden_act", {"silu", "swish"});
  read_rope(r, m, 10000.0);
  read_window_from_layer(r, m);
  read_layer_types(r, m);
}

}  // namespace sweep::shape
