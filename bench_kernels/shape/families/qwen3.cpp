// Qwen 3 and its mixtures of experts: a Llama whose queries and keys pass a norm in each head, and whose heads are
// wider than hidden_size / heads.
#include "bench_kernels/shape/config_reader.h"
#include "bench_kernels/shape/family.h"

namespace sweep::shape::families {

namespace {

void read_qwen3(ConfigReader& r, ModelSpec& m, i64 kv_heads) {
  read_qwen(r, m, kv_heads);
  r.only("attention_bias", false);
}

// Every layer has experts, and the weights of those that are chosen add up to 1.
void read_qwen3_experts(ConfigReader& r, ModelSpec& m) {
  // Newer writers call it num_local_experts.
  m.experts = r.integer("num_experts").value_or(r.integer("num_local_experts").value_or(128));
  m.experts_per_token = r.integer("num_experts_per_tok").value_or(8);
  m.intermediate_size = r.integer("moe_intermediate_size").value_or(768);
  if (r.flag("output_router_logits").value_or(false))  // else the reference leaves the auxiliary loss out
    m.router_aux_coef = r.number("router_aux_loss_coef").value_or(0.001);
  r.only("norm_topk_prob", true, false);
  r.only("decoder_sparse_step", i64{1});
  const nlohmann::json* dense = r.find("mlp_only_layers");
  if (dense != nullptr && !dense->empty())
    r.refuse(ErrorKind::kUnsupported, "mlp_only_layers",
             "'mlp_only_layers' is not supported: all layers have experts");
}

}  // namespace

extern const Family kQwen3{
    .name = "qwen3",
    .architecture = "Qwen3ForCausalLM",
    .read =
        [](ConfigReader& r, ModelSpec& m) {
          read_qwen3(r, m, 32);
          if (m.head_dim == 0) m.head_dim = 128;
        },
    .qk_norm = true,
};

extern const Family kQwen3Moe{
    .name = "qwen3_moe",
    .architecture = "Qwen3MoeForCausalLM",
    .read =
        [](ConfigReader& r, ModelSpec& m) {
          read_qwen3(r, m, 4);
          read_qwen3_experts(r, m);
        },
    .experts = true,
    .qk_norm = true,
    .names = {.experts = "mlp.",
              .expert_gate = "gate_proj",
              .expert_up = "up_proj",
              .expert_down = "down_proj"},
};

}  // namespace sweep::shape::families
