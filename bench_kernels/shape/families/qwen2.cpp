// Qwen 2 and 2.5: a Llama with biases on query, key and value.
#include "bench_kernels/shape/config_reader.h"
#include "bench_kernels/shape/family.h"

namespace sweep::shape::families {

namespace {

// Layers below max_window_layers attend in full.
void read_window(ConfigReader& r, ModelSpec& m) {
  if (!r.flag("use_sliding_window").value_or(false) || r.null("sliding_window")) return;
  const i64 from = r.integer("max_window_layers").value_or(28);
  const bool each_layer = r.find("layer_types") != nullptr;
  if (from <= 0 || (from < m.layers && each_layer))
    m.sliding_window = r.integer("sliding_window").value_or(4096);
  if (from > 0 && from < m.layers && !each_layer)
    r.refuse(
        ErrorKind::kUnsupported, "max_window_layers",
        fmt::format(
            "'max_window_layers' {} of {} layers mixes sliding and full attention, which is not supported",
            from, m.layers));
}

}  // namespace

extern const Family kQwen2{
    .name = "qwen2",
    .architecture = "Qwen2ForCausalLM",
    .read =
        [](ConfigReader& r, ModelSpec& m) {
          read_decoder(r, m, 32, 1e-6);
          read_activation(r, m, "hidden_act", {"silu", "swish"});
          read_rope(r, m, 10000.0);
          read_window(r, m);
          read_layer_types(r, m);
        },
    .attention_bias = true,
};

}  // namespace sweep::shape::families
