// T5 (Raffel et al. 2019, arXiv 1910.10683): an encoder and a decoder with norms before each part, relative positions,
// no biases, and a head of its own or the embedding's table. Version 1.1 of its released models has a gated GELU, the
// first one ReLU without a gate.
#include "bench_kernels/shape/config_reader.h"
#include "bench_kernels/shape/family.h"

namespace sweep::shape::families {

namespace {

void read_t5(ConfigReader& r, ModelSpec& m) {
  m.encoder_layers = r.required("num_layers");
  m.layers = r.integer("num_decoder_layers").value_or(m.encoder_layers);
  m.hidden_size = r.required("d_model");
  m.heads = r.required("num_heads");
  m.head_dim = r.required("d_kv");
  m.intermediate_size = r.required("d_ff");
  m.norm_eps = r.number("layer_norm_epsilon").value_or(1e-6);
  m.tie_embeddings = r.flag("tie_word_embeddings").value_or(true);
  const std::string activation = r.word("feed_forward_proj").value_or("relu");
  if (activation == "relu") m.family = "t5_v1_0";
  if (activation != "relu" && activation != "gated-gelu")
    r.refuse(ErrorKind::kUnsupported, "feed_forward_proj",
             "'feed_forward_proj' other than relu (version 1.0) and gated-gelu (1.1) is not supported");
  r.only("relative_attention_num_buckets", kRelativeBuckets);
  r.only("relative_attention_max_distance", kRelativeDistance);
  if (m.encoder_layers < 1)
    r.refuse(ErrorKind::kInvalidValue, "num_layers",
             fmt::format("'num_layers' = {} is below 1", m.encoder_layers));
}

constexpr TensorNames kT5Names{
    .token_table = "shared.weight",
    .position_table = "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    .layers = "decoder.block.",
    .final_norm = "decoder.final_layer_norm",
    .attention_norm = "layer.0.layer_norm",
    .query = "layer.0.SelfAttention.q",
    .key = "layer.0.SelfAttention.k",
    .value = "layer.0.SelfAttention.v",
    .attention_out = "layer.0.SelfAttention.o",
    .mlp_norm = "layer.2.layer_norm",
    .gate = "layer.2.DenseReluDense.wi_0",
    .up = "layer.2.DenseReluDense.wi_1",
    .down = "layer.2.DenseReluDense.wo",
    .encoder_layers = "encoder.block.",
    .encoder_norm = "encoder.final_layer_norm",
    .encoder_positions = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    .mlp_of_decoder = "layer.2.",
    .mlp_of_encoder = "layer.1.",
    .cross_norm = "layer.1.layer_norm",
    .cross_query = "layer.1.EncDecAttention.q",
    .cross_key = "layer.1.EncDecAttention.k",
    .cross_value = "layer.1.EncDecAttention.v",
    .cross_out = "layer.1.EncDecAttention.o"};

constexpr TensorNames without_gate(TensorNames names) {
  names.up = "layer.2.DenseReluDense.wi";
  return names;
}

}  // namespace

extern const Family kT5{
    .name = "t5",
    .architecture = "T5ForConditionalGeneration",
    .read = read_t5,
    .rotary = false,
    .gelu_gate = true,
    .cross_attention = true,
    .relative_positions = true,
    .scales_tied_head = true,
    .names = kT5Names,
};

extern const Family kT5Relu{
    .name = "t5_v1_0",
    .architecture = "T5ForConditionalGeneration",
    .read = read_t5,
    .gated_mlp = false,
    .rotary = false,
    .relu = true,
    .cross_attention = true,
    .relative_positions = true,
    .scales_tied_head = true,
    .names = without_gate(kT5Names),
};

}  // namespace sweep::shape::families
