// GPT-2: learned positions, LayerNorm, biases, and one tensor for query, key and value.
#include "bench_kernels/shape/config_reader.h"
#include "bench_kernels/shape/family.h"

namespace sweep::shape::families {

namespace {

void read_gpt2(ConfigReader& r, ModelSpec& m) {
  m.layers = r.required("n_layer");
  m.hidden_size = r.required("n_embd");
  m.heads = r.required("n_head");
  m.max_positions = r.integer("n_positions").value_or(1024);
  m.intermediate_size = r.integer("n_inner").value_or(0);  // a missing or null key means 4 x n_embd
  m.tie_embeddings = r.flag("tie_word_embeddings").value_or(true);
  m.norm_eps = r.number("layer_norm_epsilon").value_or(1e-5);
  read_activation(r, m, "activation_function", {"gelu_new", "gelu_pytorch_tanh"});
  r.only("scale_attn_weights", true);
  for (const char* key : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"}) r.only(key, false);
  if (m.max_positions < 1)
    r.refuse(ErrorKind::kInvalidValue, "n_positions",
             fmt::format("'n_positions' = {} is below 1", m.max_positions));
}

}  // namespace

extern const Family kGpt2{
    .name = "gpt2",
    .architecture = "GPT2LMHeadModel",
    .read = read_gpt2,
    .rms_norm = false,
    .gated_mlp = false,
    .rotary = false,
    .attention_bias = true,
    .linear_bias = true,
    .names = {.token_table = "transformer.wte.weight",
              .position_table = "transformer.wpe.weight",
              .layers = "transformer.h.",
              .final_norm = "transformer.ln_f",
              .attention_norm = "ln_1",
              .fused_query_key_value = "attn.c_attn",
              .attention_out = "attn.c_proj",
              .mlp_norm = "ln_2",
              .up = "mlp.c_fc",
              .down = "mlp.c_proj",
              .transposed = true},
};

}  // namespace sweep::shape::families
