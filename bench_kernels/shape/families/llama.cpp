// Llama 1 to 3, and models of its shape.
#include "bench_kernels/shape/config_reader.h"
#include "bench_kernels/shape/family.h"

namespace sweep::shape::families {

extern const Family kLlama{
    .name = "llama",
    .architecture = "LlamaForCausalLM",
    .read =
        [](ConfigReader& r, ModelSpec& m) {
          read_decoder(r, m, 0, 1e-6);
          read_activation(r, m, "hidden_act", {"silu", "swish"});
          r.only("attention_bias", false);
          read_rope(r, m, 10000.0);
          read_layer_types(r, m);
        },
};

}  // namespace sweep::shape::families
