// Mistral: a Llama with a sliding window.
#include "bench_kernels/shape/config_reader.h"
#include "bench_kernels/shape/family.h"

namespace sweep::shape::families {

extern const Family kMistral{
    .name = "mistral",
    .architecture = "MistralForCausalLM",
    .read =
        [](ConfigReader& r, ModelSpec& m) {
          read_decoder(r, m, 8, 1e-6);
          read_activation(r, m, "hidden_act", {"silu", "swish"});
          read_rope(r, m, 10000.0);
          if (!r.null("sliding_window")) m.sliding_window = r.integer("sliding_window").value_or(4096);
          read_layer_types(r, m);
        },
};

}  // namespace sweep::shape::families
