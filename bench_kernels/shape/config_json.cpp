// Hugging Face config.json -> ModelSpec. Absent keys take the defaults of the family's configuration class in
// the transformers package; sizes that define the model must be there. Dropout is not read: the step has
// none.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench_kernels/shape/catalogue.h"
#include "schema/codec.h"

namespace sweep::shape {
namespace {

using nlohmann::json;
constexpr std::size_t kMaxBytes = 1u << 20;
constexpr int kMaxDepth = 32;

// Reads members of one JSON object and keeps the first error, so that a reader is a plain list of keys.
class Reader {
 public:
  explicit Reader(const json& object) : object_(object) {}

  // The member, or nullptr when absent or null.
  const json* find(const char* key) const {
    const auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  bool null(const char* key) const {
    const auto it = object_.find(key);
    return it != object_.end() && it->is_null();
  }
  std::optional<i64> integer(const char* key) {
    const json* j = find(key);
    if (!j) return std::nullopt;
    const bool too_big = j->is_number_unsigned() && j->get<std::uint64_t>() > (std::uint64_t{1} << 62);
    if (!j->is_number_integer() || too_big) return wrong(key, "an integer below 2^62");
    return j->get<i64>();
  }
  std::optional<double> number(const char* key) {
    const json* j = find(key);
    if (!j) return std::nullopt;
    if (!j->is_number()) return wrong(key, "a number");
    return j->get<double>();
  }
  std::optional<bool> flag(const char* key) {
    const json* j = find(key);
    if (!j) return std::nullopt;
    if (!j->is_boolean()) return wrong(key, "true or false");
    return j->get<bool>();
  }
  std::optional<std::string> word(const char* key) {
    const json* j = find(key);
    if (!j) return std::nullopt;
    if (!j->is_string()) return wrong(key, "a string");
    return j->get<std::string>();
  }
  i64 required(const char* key) {
    const auto value = integer(key);
    if (!value) refuse(fmt::format("it has no '{}'", key));
    return value.value_or(0);
  }
  void refuse(std::string why) {
    if (error_.empty()) error_ = std::move(why);
  }
  const std::string& error() const { return error_; }

 private:
  std::nullopt_t wrong(const char* key, const char* wanted) {
    refuse(fmt::format("'{}' is {}, not {}", key, short_text(object_.at(key)), wanted));
    return std::nullopt;
  }
  static std::string short_text(const json& j) {
    std::string text = dump(j);
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    return text;
  }
  const json& object_;
  std::string error_;
};

std::string clipped(const std::string& s) {
  return s.size() > 60 ? s.substr(0, 57) + "..." : s;
}

// The family by model_type, or by the architecture's name where model_type is absent.
std::optional<std::string> family_of(Reader& r) {
  const auto type = r.word("model_type");
  if (type) {
    for (const char* known : {"llama", "mistral", "qwen2", "gpt2", "mixtral"})
      if (*type == known) return *type;
    r.refuse(fmt::format("model_type '{}' is not supported; supported: llama, mistral, qwen2, gpt2, mixtral",
                         clipped(*type)));
    return std::nullopt;
  }
  const json* names = r.find("architectures");
  if (names && names->is_array() && !names->empty() && names->front().is_string()) {
    const auto name = names->front().get<std::string>();
    if (name == "LlamaForCausalLM") return "llama";
    if (name == "MistralForCausalLM") return "mistral";
    if (name == "Qwen2ForCausalLM") return "qwen2";
    if (name == "GPT2LMHeadModel") return "gpt2";
    if (name == "MixtralForCausalLM") return "mixtral";
    r.refuse(fmt::format("architecture '{}' is not supported", clipped(name)));
  }
  r.refuse("it has no 'model_type'");
  return std::nullopt;
}

void refuse_experts(Reader& r) {
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts"})
    if (r.integer(key).value_or(0) > 1)
      r.refuse(fmt::format("mixture of experts ('{}') is not supported", key));
}

// rope_scaling (older writers; the type under "rope_type" or "type") or rope_parameters (newer, which hold
// rope_theta).
void read_rope(Reader& r, ModelSpec& m) {
  m.rope_theta = r.number("rope_theta").value_or(m.family == "mixtral" ? 1e6 : 10000.0);
  if (r.number("partial_rotary_factor").value_or(1.0) != 1.0)
    r.refuse("'partial_rotary_factor' is not supported");
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const json* j = r.find(key);
    if (!j) continue;
    if (!j->is_object()) return r.refuse(fmt::format("'{}' is not an object", key));
    Reader rope(*j);
    m.rope_theta = rope.number("rope_theta").value_or(m.rope_theta);
    if (rope.number("partial_rotary_factor").value_or(1.0) != 1.0)
      rope.refuse("'partial_rotary_factor' is not supported");
    auto type = rope.word("rope_type");
    if (!type) type = rope.word("type");
    if (type.value_or("default") == "llama3") {
      for (const char* need :
           {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"})
        if (!rope.find(need)) rope.refuse(fmt::format("rope type 'llama3' has no '{}'", need));
      m.rope_scaling =
          RopeScaling{rope.number("factor").value_or(0), rope.number("low_freq_factor").value_or(0),
                      rope.number("high_freq_factor").value_or(0),
                      rope.integer("original_max_position_embeddings").value_or(0)};
    } else if (type.value_or("default") != "default") {
      rope.refuse(fmt::format("rope type '{}' is not supported; supported: default, llama3", clipped(*type)));
    }
    if (!rope.error().empty()) return r.refuse(fmt::format("in '{}': {}", key, rope.error()));
    return;
  }
}

// Layers with and without a window in one model are refused: the step has one kind of layer.
void read_layer_types(Reader& r, ModelSpec& m) {
  const json* types = r.find("layer_types");
  if (!types) return;
  if (!types->is_array()) return r.refuse("'layer_types' is not a list");
  bool sliding = false, full = false;
  for (const json& t : *types) {
    if (t == "sliding_attention")
      sliding = true;
    else if (t == "full_attention")
      full = true;
    else
      return r.refuse("'layer_types' names a kind of attention that is not supported");
  }
  if (sliding && full)
    return r.refuse("'layer_types' mixes sliding and full attention, which is not supported");
  if (full) m.sliding_window.reset();
}

void read_sliding_window(Reader& r, ModelSpec& m) {
  if (m.family == "mixtral") {
    m.sliding_window = r.integer("sliding_window");
  } else if (m.family == "mistral") {
    m.sliding_window = r.null("sliding_window")
                           ? std::nullopt
                           : std::optional<i64>(r.integer("sliding_window").value_or(4096));
  } else if (m.family == "qwen2" && r.flag("use_sliding_window").value_or(false) &&
             !r.null("sliding_window")) {
    const i64 from = r.integer("max_window_layers").value_or(28);  // layers below it attend in full
    if (from <= 0)
      m.sliding_window = r.integer("sliding_window").value_or(4096);
    else if (from < m.layers && !r.find("layer_types"))
      r.refuse(fmt::format(
          "'max_window_layers' {} of {} layers mixes sliding and full attention, which is not supported",
          from, m.layers));
    else if (r.find("layer_types"))
      m.sliding_window = r.integer("sliding_window").value_or(4096);
  }
  read_layer_types(r, m);
}

// Defaults as MixtralConfig's. Jitter on the router's input is noise of training that the step does not have.
void read_mixtral(Reader& r, ModelSpec& m) {
  m.experts = r.integer("num_local_experts").value_or(8);
  m.experts_per_token = r.integer("num_experts_per_tok").value_or(2);
  if (r.flag("output_router_logits").value_or(false))  // else the reference leaves the auxiliary loss out
    m.router_aux_coef = r.number("router_aux_loss_coef").value_or(0.001);
  if (r.number("router_jitter_noise").value_or(0.0) != 0.0)
    r.refuse("'router_jitter_noise' is not supported");
}

void read_llama_like(Reader& r, ModelSpec& m) {
  const bool mixtral = m.family == "mixtral";
  if (mixtral) read_mixtral(r, m);
  m.layers = r.required("num_hidden_layers");
  m.hidden_size = r.required("hidden_size");
  m.heads = r.required("num_attention_heads");
  m.intermediate_size = r.required("intermediate_size");
  const i64 absent = m.family == "mistral" || mixtral ? 8 : m.family == "qwen2" ? 32 : m.heads;
  m.kv_heads = r.null("num_key_value_heads") ? m.heads : r.integer("num_key_value_heads").value_or(absent);
  m.head_dim = r.integer("head_dim").value_or(0);
  m.tie_embeddings = r.flag("tie_word_embeddings").value_or(false);
  m.norm_eps = r.number("rms_norm_eps").value_or(mixtral ? 1e-5 : 1e-6);
  const std::string act = r.word("hidden_act").value_or("silu");
  if (act != "silu" && act != "swish")
    r.refuse(fmt::format("hidden_act '{}' is not supported by {}; supported: silu", clipped(act), m.family));
  if (m.family == "llama" && r.flag("attention_bias").value_or(false))
    r.refuse("'attention_bias' of the llama family is not supported");
  if (r.flag("mlp_bias").value_or(false)) r.refuse("'mlp_bias' is not supported");
  read_rope(r, m);
  read_sliding_window(r, m);
}

void read_gpt2(Reader& r, ModelSpec& m) {
  m.layers = r.required("n_layer");
  m.hidden_size = r.required("n_embd");
  m.heads = r.required("n_head");
  m.max_positions = r.integer("n_positions").value_or(1024);
  m.intermediate_size = r.integer("n_inner").value_or(0);  // absent or null: 4 x n_embd
  m.tie_embeddings = r.flag("tie_word_embeddings").value_or(true);
  m.norm_eps = r.number("layer_norm_epsilon").value_or(1e-5);
  const std::string act = r.word("activation_function").value_or("gelu_new");
  if (act != "gelu_new" && act != "gelu_pytorch_tanh")
    r.refuse(
        fmt::format("activation_function '{}' is not supported by gpt2; supported: gelu_new", clipped(act)));
  if (!r.flag("scale_attn_weights").value_or(true)) r.refuse("'scale_attn_weights': false is not supported");
  for (const char* key : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"})
    if (r.flag(key).value_or(false)) r.refuse(fmt::format("'{}' is not supported", key));
  if (m.max_positions < 1) r.refuse(fmt::format("'n_positions' = {} is below 1", m.max_positions));
}

}  // namespace

Expected<ModelSpec> model_from_config_json(std::string_view text) {
  const auto parsed = parse_json(text, kMaxBytes, kMaxDepth);
  if (!parsed) return fail("config.json: " + parsed.error().message);
  if (!parsed->is_object()) return fail("config.json: the text is not a JSON object");
  Reader r(*parsed);
  ModelSpec m;
  const auto family = family_of(r);
  if (!family) return fail("config.json: " + r.error());
  m.family = *family;
  if (m.family != "mixtral") refuse_experts(r);
  m.vocab_size = r.required("vocab_size");
  if (m.family == "gpt2")
    read_gpt2(r, m);
  else
    read_llama_like(r, m);
  if (!r.error().empty()) return fail("config.json: " + r.error());
  auto spec = completed(m);
  if (!spec) return fail("config.json: " + spec.error().message);
  return spec;
}

}  // namespace sweep::shape
