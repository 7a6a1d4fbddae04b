// BlenderBot (Roller et al. 2020, arXiv 2004.13637): an encoder and a decoder with norms before each part, learned
// positions, biases, and one table for both embeddings and the head.
#include "bench_kernels/shape/config_reader.h"
#include "bench_kernels/shape/family.h"

namespace sweep::shape::families {

namespace {

// Both sides are as wide here: the file could say otherwise.
void read_blenderbot(ConfigReader& r, ModelSpec& m) {
  m.layers = r.required("decoder_layers");
  m.encoder_layers = r.required("encoder_layers");
  m.hidden_size = r.required("d_model");
  m.heads = r.required("decoder_attention_heads");
  m.intermediate_size = r.required("decoder_ffn_dim");
  m.max_positions = r.integer("max_position_embeddings").value_or(128);
  m.tie_embeddings = true;
  for (const auto& [key, size] :
       {std::pair("encoder_attention_heads", m.heads), std::pair("encoder_ffn_dim", m.intermediate_size)})
    if (r.required(key) != size)
      r.refuse(ErrorKind::kUnsupported, key,
               fmt::format("'{}' differs from the decoder's, which is not supported", key));
  r.only("tie_word_embeddings", true);
  r.only("scale_embedding", true, false);
  read_activation(r, m, "activation_function", {"gelu"});
  if (m.encoder_layers < 1)
    r.refuse(ErrorKind::kInvalidValue, "encoder_layers",
             fmt::format("'encoder_layers' = {} is below 1", m.encoder_layers));
}

}  // namespace

extern const Family kBlenderbot{
    .name = "blenderbot",
    .architecture = "BlenderbotForConditionalGeneration",
    .read = read_blenderbot,
    .rms_norm = false,
    .gated_mlp = false,
    .rotary = false,
    .attention_bias = true,
    .linear_bias = true,
    .exact_gelu = true,
    .cross_attention = true,
    .scales_embedding = true,
    .names = {.token_table = "model.shared.weight",
              .position_table = "model.decoder.embed_positions.weight",
              .layers = "model.decoder.layers.",
              .final_norm = "model.decoder.layer_norm",
              .attention_norm = "self_attn_layer_norm",
              .attention_out = "self_attn.out_proj",
              .mlp_norm = "final_layer_norm",
              .up = "fc1",
              .down = "fc2",
              .encoder_layers = "model.encoder.layers.",
              .encoder_norm = "model.encoder.layer_norm",
              .encoder_positions = "model.encoder.embed_positions.weight",
              .cross_norm = "encoder_attn_layer_norm",
              .cross_query = "encoder_attn.q_proj",
              .cross_key = "encoder_attn.k_proj",
              .cross_value = "encoder_attn.v_proj",
              .cross_out = "encoder_attn.out_proj"},
};

}  // namespace sweep::shape::families
