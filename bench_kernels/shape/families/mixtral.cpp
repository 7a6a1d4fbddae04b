// Mixtral: a Mistral whose MLP is a choice of experts.
#include "bench_kernels/shape/config_reader.h"
#include "bench_kernels/shape/family.h"

namespace sweep::shape::families {

namespace {

// Defaults as MixtralConfig's. Jitter on the router's input is noise of training that the step does not have.
void read_experts(ConfigReader& r, ModelSpec& m) {
  m.experts = r.integer("num_local_experts").value_or(8);
  m.experts_per_token = r.integer("num_experts_per_tok").value_or(2);
  if (r.flag("output_router_logits").value_or(false))  // else the reference leaves the auxiliary loss out
    m.router_aux_coef = r.number("router_aux_loss_coef").value_or(0.001);
  r.only("router_jitter_noise", 0.0);
}

}  // namespace

extern const Family kMixtral{
    .name = "mixtral",
    .architecture = "MixtralForCausalLM",
    .read =
        [](ConfigReader& r, ModelSpec& m) {
          read_experts(r, m);
          read_decoder(r, m, 8, 1e-5);
          read_activation(r, m, "hidden_act", {"silu", "swish"});
          read_rope(r, m, 1e6);
          m.sliding_window = r.integer("sliding_window");
          read_layer_types(r, m);
        },
    .experts = true,
};

}  // namespace sweep::shape::families
