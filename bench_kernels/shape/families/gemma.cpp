// Gemma 1. Gemma 2 has another model_type and is refused: capped logits are not built.
#include "bench_kernels/shape/config_reader.h"
#include "bench_kernels/shape/family.h"

namespace sweep::shape::families {

extern const Family kGemma{
    .name = "gemma",
    .architecture = "GemmaForCausalLM",
    .read =
        [](ConfigReader& r, ModelSpec& m) {
          read_decoder(r, m, 16, 1e-6);
          m.head_dim = r.integer("head_dim").value_or(256);
          m.tie_embeddings = r.flag("tie_word_embeddings").value_or(true);
          // The released files say gelu, and mean the tanh form: transformers reads them so.
          read_activation(r, m, "hidden_act", {"gelu_pytorch_tanh", "gelu"});
          read_activation(r, m, "hidden_activation", {"gelu_pytorch_tanh"});
          for (const char* key : {"attention_bias", "use_bidirectional_attention"}) r.only(key, false);
          read_rope(r, m, 10000.0);
        },
    .norm_adds_one = true,
    .gelu_gate = true,
    .scales_embedding = true,
};

}  // namespace sweep::shape::families
