// gpt-oss (arXiv 2508.10925): experts in every layer, windows of 128 tokens in every other one, a learned sink in each
// head's attention, a bias in every linear layer of a block (not in embedding, norms and head).
#include "bench_kernels/shape/config_reader.h"
#include "bench_kernels/shape/family.h"

namespace sweep::shape::families {

namespace {

void read_gpt_oss_experts(ConfigReader& r, ModelSpec& m) {
  m.experts = r.integer("num_local_experts").value_or(128);
  // Older writers call it experts_per_token.
  m.experts_per_token = r.integer("num_experts_per_tok").value_or(r.integer("experts_per_token").value_or(4));
  if (r.flag("output_router_logits").value_or(false))  // else the reference leaves the auxiliary loss out
    m.router_aux_coef = r.number("router_aux_loss_coef").value_or(0.001);
  r.only("swiglu_alpha", 1.702);
  r.only("swiglu_limit", 7.0);
}

void read_gpt_oss(ConfigReader& r, ModelSpec& m) {
  read_decoder(r, m, 8, 1e-5);
  if (m.head_dim == 0) m.head_dim = 64;
  read_activation(r, m, "hidden_act", {"silu"});
  r.only("attention_bias", true);
  if (!r.null("sliding_window")) m.sliding_window = r.integer("sliding_window").value_or(128);
  if (m.sliding_window) m.sliding_window_pattern = 2;
  read_layer_types(r, m);
  read_gpt_oss_experts(r, m);
  m.yarn = YarnScaling{32, 32, 1, 0, 0, 4096, false};
  read_rope(r, m, 150000.0);
}

}  // namespace

extern const Family kGptOss{
    .name = "gpt_oss",
    .architecture = "GptOssForCausalLM",
    .read = read_gpt_oss,
    .attention_bias = true,
    .linear_bias = true,
    .experts = true,
    .clamped_swiglu = true,
    .yarn = true,
    .names = {.sinks = "self_attn.sinks",
              .experts = "mlp.",
              .router = "router",
              .expert_gate = "gate_proj",
              .expert_up = "up_proj",
              .expert_down = "down_proj"},
};

}  // namespace sweep::shape::families
