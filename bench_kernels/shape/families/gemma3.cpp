// Gemma 3 (arXiv 2503.19786), its text models: layers with a window and, every so many, one without, each kind with
// rotary positions of its own; norms of the heads of queries and keys, and before and after each half of a layer.
#include "bench_kernels/shape/config_reader.h"
#include "bench_kernels/shape/family.h"

namespace sweep::shape::families {

namespace {

// Scaling of the layers with full attention.
void read_scaling(ConfigReader& rope, ModelSpec& m) {
  m.rope_theta = rope.number("rope_theta").value_or(m.rope_theta);
  auto type = rope.word("rope_type");
  if (!type) type = rope.word("type");
  if (type.value_or("default") == "default") return;
  if (type != "linear")
    return rope.refuse(ErrorKind::kUnsupported, *type,
                       fmt::format("rope type '{}' is not supported by {}; supported: default, linear",
                                   clipped(*type), m.family));
  if (!rope.find("factor")) rope.refuse(ErrorKind::kMissing, "factor", "rope type 'linear' has no 'factor'");
  m.rope_linear_factor = rope.number("factor").value_or(1);
}

void read_part(ConfigReader& r, const char* key, const nlohmann::json& object, ModelSpec& m,
               void (*read)(ConfigReader&, ModelSpec&)) {
  if (!object.is_object())
    return r.refuse(ErrorKind::kInvalidValue, key, fmt::format("'{}' is not an object", key));
  ConfigReader part(object);
  read(part, m);
  if (const auto& e = part.error())
    r.refuse(e->kind, e->subject, fmt::format("in '{}': {}", key, e->message));
}

// Newer writers have an object for each kind of layer in rope_parameters; the released files have rope_theta,
// rope_local_base_freq and rope_scaling.
void read_rotary(ConfigReader& r, ModelSpec& m) {
  m.rope_theta = r.number("rope_theta").value_or(1e6);
  m.rope_local_theta = r.number("rope_local_base_freq").value_or(1e4);
  if (const auto* scaling = r.find("rope_scaling")) read_part(r, "rope_scaling", *scaling, m, read_scaling);
  const auto* kinds = r.find("rope_parameters");
  if (!kinds || !kinds->is_object()) return;
  if (const auto full = kinds->find("full_attention"); full != kinds->end())
    read_part(r, "rope_parameters", *full, m, read_scaling);
  if (const auto local = kinds->find("sliding_attention"); local != kinds->end())
    read_part(r, "rope_parameters", *local, m, [](ConfigReader& rope, ModelSpec& spec) {
      spec.rope_local_theta = rope.number("rope_theta").value_or(spec.rope_local_theta);
    });
}

void read_gemma3(ConfigReader& r, ModelSpec& m) {
  read_decoder(r, m, 4, 1e-6);
  m.head_dim = r.integer("head_dim").value_or(256);
  m.tie_embeddings = r.flag("tie_word_embeddings").value_or(true);
  m.query_pre_attn_scalar = r.integer("query_pre_attn_scalar").value_or(256);
  m.sliding_window =
      r.null("sliding_window") ? std::nullopt : std::optional(r.integer("sliding_window").value_or(4096));
  m.sliding_window_pattern = r.integer("sliding_window_pattern").value_or(6);
  read_layer_types(r, m);
  read_activation(r, m, "hidden_activation", {"gelu_pytorch_tanh"});
  for (const char* key : {"attention_bias", "use_bidirectional_attention"}) r.only(key, false);
  for (const char* key : {"final_logit_softcapping", "attn_logit_softcapping"})
    if (r.find(key))
      r.refuse(ErrorKind::kUnsupported, key,
               fmt::format("'{}' is not supported: logits are not capped", key));
  read_rotary(r, m);
}

}  // namespace

extern const Family kGemma3{
    .name = "gemma3_text",
    .with_images = "gemma3",
    .defaults = R"({"vocab_size": 262208, "num_attention_heads": 8})",
    .architecture = "Gemma3ForCausalLM",
    .read = read_gemma3,
    .qk_norm = true,
    .norm_adds_one = true,
    .gelu_gate = true,
    .scales_embedding = true,
    .names = {.mlp_norm = "pre_feedforward_layernorm",
              .attention_post_norm = "post_attention_layernorm",
              .mlp_post_norm = "post_feedforward_layernorm"},
};

}  // namespace sweep::shape::families
