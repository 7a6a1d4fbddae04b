// Qwen 2 and 2.5: a Llama with biases on query, key and value.
#include "bench_kernels/shape/config_reader.h"
#include "bench_kernels/shape/family.h"

namespace sweep::shape::families {

extern const Family kQwen2{
    .name = "qwen2",
    .architecture = "Qwen2ForCausalLM",
    .read =
        [](ConfigReader& r, ModelSpec& m) {
          read_decoder(r, m, 32, 1e-6);
          read_activation(r, m, "hidden_act", {"silu", "swish"});
          read_rope(r, m, 10000.0);
          read_window_from_layer(r, m);
          read_layer_types(r, m);
        },
    .attention_bias = true,
};

}  // namespace sweep::shape::families
