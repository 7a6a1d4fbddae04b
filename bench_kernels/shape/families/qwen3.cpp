// Qwen 3: a Llama whose queries and keys pass a norm in each head, and whose heads are wider than hidden_size / heads.
#include "bench_kernels/shape/config_reader.h"
#include "bench_kernels/shape/family.h"

namespace sweep::shape::families {

extern const Family kQwen3{
    .name = "qwen3",
    .architecture = "Qwen3ForCausalLM",
    .read =
        [](ConfigReader& r, ModelSpec& m) {
          read_decoder(r, m, 32, 1e-6);
          if (m.head_dim == 0) m.head_dim = 128;
          read_activation(r, m, "hidden_act", {"silu", "swish"});
          read_rope(r, m, 10000.0);
          read_window_from_layer(r, m);
          read_layer_types(r, m);
          if (r.flag("attention_bias").value_or(false))
            r.refuse(ErrorKind::kUnsupported, "attention_bias", "'attention_bias' is not supported");
        },
    .qk_norm = true,
};

}  // namespace sweep::shape::families
