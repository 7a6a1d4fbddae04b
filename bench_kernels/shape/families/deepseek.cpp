// DeepSeek-V2 (arXiv 2405.04434) and V3 (arXiv 2412.19437): multi-head latent attention, first layers without experts,
// then experts of which some are shared by all tokens. V3's modules for multi-token prediction are not built, as in
// transformers, which leaves them out too.
#include "bench_kernels/shape/config_reader.h"
#include "bench_kernels/shape/family.h"

namespace sweep::shape::families {

namespace {

void refuse_other(ConfigReader& r, const char* key, const std::string& why) {
  r.refuse(ErrorKind::kUnsupported, key, fmt::format("'{}' {}", key, why));
}

void read_latents(ConfigReader& r, ModelSpec& m) {
  m.kv_lora_rank = r.integer("kv_lora_rank").value_or(512);
  m.q_lora_rank = r.null("q_lora_rank") ? 0 : r.integer("q_lora_rank").value_or(1536);
  m.rope_head_dim = r.integer("qk_rope_head_dim").value_or(64);
  m.head_dim = r.integer("qk_nope_head_dim").value_or(128) + m.rope_head_dim;
  m.v_head_dim = r.integer("v_head_dim").value_or(128);
  if (m.kv_heads != m.heads)
    refuse_other(r, "num_key_value_heads", "other than num_attention_heads is not supported");
  r.only("attention_bias", false);
  r.only("rope_interleave", true);
}

struct ExpertDefaults {
  i64 routed, shared, chosen, width, dense, groups, groups_per_token;
  double scaling;
};

// Leaves out the auxiliary loss, as the reference does.
void read_experts(ConfigReader& r, ModelSpec& m, const ExpertDefaults& d) {
  m.dense_intermediate_size = m.intermediate_size;
  m.experts = r.integer("n_routed_experts").value_or(d.routed);
  m.shared_experts = r.null("n_shared_experts") ? 0 : r.integer("n_shared_experts").value_or(d.shared);
  m.experts_per_token =
      d.chosen > 0 ? r.integer("num_experts_per_tok").value_or(d.chosen) : r.required("num_experts_per_tok");
  m.intermediate_size = r.integer("moe_intermediate_size").value_or(d.width);
  m.dense_layers = r.integer("first_k_dense_replace").value_or(d.dense);
  if (m.dense_layers < 0 || m.dense_layers >= m.layers)
    r.refuse(
        ErrorKind::kInvalidValue, "first_k_dense_replace",
        fmt::format("first_k_dense_replace = {} is outside 0 .. {}: at least one of {} num_hidden_layers "
                    "must have experts",
                    m.dense_layers, std::max<i64>(0, m.layers - 1), m.layers));
  m.routed_scaling = r.number("routed_scaling_factor").value_or(d.scaling);
  m.expert_groups = r.integer("n_group").value_or(d.groups);
  m.groups_per_token = r.integer("topk_group").value_or(d.groups_per_token);
  if (m.expert_groups <= 1) m.expert_groups = m.groups_per_token = 0;
  r.only("moe_layer_freq", i64{1});
  r.only("ep_size", i64{1});  // ep is an axis
}

void read_words(ConfigReader& r, const char* key, const char* supported) {
  const auto word = r.word(key);
  if (word && *word != supported)
    refuse_other(r, key, fmt::format("'{}' is not supported; supported: {}", clipped(*word), supported));
}

void read_deepseek(ConfigReader& r, ModelSpec& m, const ExpertDefaults& defaults) {
  read_decoder(r, m, 0, 1e-6);
  read_activation(r, m, "hidden_act", {"silu", "swish"});
  read_latents(r, m);
  read_experts(r, m, defaults);
  read_rope(r, m, 10000.0);
}

void read_v2(ConfigReader& r, ModelSpec& m) {
  read_deepseek(r, m, {64, 2, 0, 1407, 0, 0, 0, 1.0});
  read_words(r, "scoring_func", "softmax");
  // With norm_topk_prob the published code normalises and does not scale; transformers does neither.
  r.only("norm_topk_prob", false);
  const std::string method = r.word("topk_method").value_or("greedy");
  if (method == "greedy")
    m.expert_groups = m.groups_per_token = 0;
  else if (method != "group_limited_greedy")
    refuse_other(r, "topk_method", fmt::format("'{}' is not supported", clipped(method)));
}

void read_v3(ConfigReader& r, ModelSpec& m) {
  read_deepseek(r, m, {256, 1, 8, 2048, 3, 8, 4, 2.5});
  read_words(r, "scoring_func", "sigmoid");
  read_words(r, "topk_method", "noaux_tc");
  if (!r.flag("norm_topk_prob").value_or(true)) refuse_other(r, "norm_topk_prob", "false is not supported");
}

constexpr TensorNames kNames{
    .experts = "mlp.", .expert_gate = "gate_proj", .expert_up = "up_proj", .expert_down = "down_proj"};

}  // namespace

extern const Family kDeepseekV2{
    .name = "deepseek_v2",
    .architecture = "DeepseekV2ForCausalLM",
    .read = read_v2,
    .experts = true,
    .latent = true,
    .exact_router = true,
    .normalized_weights = false,
    .yarn = true,
    .names = kNames,
};

extern const Family kDeepseekV3{
    .name = "deepseek_v3",
    .architecture = "DeepseekV3ForCausalLM",
    .read = read_v3,
    .experts = true,
    .latent = true,
    .sigmoid_router = true,
    .exact_router = true,
    .yarn = true,
    .names = kNames,
};

}  // namespace sweep::shape::families
