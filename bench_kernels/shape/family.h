// Family: what all models of one kind share: how transformers calls it, what its config.json says, and how
// its blocks are built. families/NAME.cpp holds one; families.cpp lists them.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "base/integers.h"
#include "schema/model_spec.h"

namespace sweep::shape {

class ConfigReader;

// Names of the modules in a checkpoint of transformers. Those of a layer follow `layers` and its number.
struct TensorNames {
  std::string_view token_table = "model.embed_tokens.weight";
  std::string_view position_table = "model.embed_positions.weight";
  std::string_view layers = "model.layers.";
  std::string_view final_norm = "model.norm";
  std::string_view attention_norm = "input_layernorm";
  std::string_view query = "self_attn.q_proj", key = "self_attn.k_proj", value = "self_attn.v_proj";
  // One tensor for query, key and value; empty: three.
  std::string_view fused_query_key_value = {};
  std::string_view attention_out = "self_attn.o_proj";
  std::string_view query_norm = "self_attn.q_norm", key_norm = "self_attn.k_norm";
  // Latent attention: modules to the latents, their norms, and from them to the heads (for queries without a latent,
  // `query`).
  std::string_view query_down = "self_attn.q_a_proj", key_value_down = "self_attn.kv_a_proj_with_mqa";
  std::string_view query_latent_norm = "self_attn.q_a_layernorm";
  std::string_view key_value_latent_norm = "self_attn.kv_a_layernorm";
  std::string_view query_up = "self_attn.q_b_proj", key_value_up = "self_attn.kv_b_proj";
  std::string_view mlp_norm = "post_attention_layernorm";
  // Norms after attention and MLP, before each is added to the residual stream; empty: there are none.
  std::string_view attention_post_norm = {}, mlp_post_norm = {};
  std::string_view gate = "mlp.gate_proj", up = "mlp.up_proj", down = "mlp.down_proj";
  // Learned sinks of the heads' attention; empty: there are none.
  std::string_view sinks = {};
  std::string_view experts = "block_sparse_moe.", router = "gate";
  std::string_view expert_gate = "w1", expert_up = "w3", expert_down = "w2";
  std::string_view shared_experts = "mlp.shared_experts.";
  // The encoder's modules of an encoder-decoder, and what a decoder layer has beside them.
  std::string_view encoder_layers = {}, encoder_norm = {}, encoder_positions = {};
  // How modules of an MLP begin in the decoder's layers, and in the encoder's; empty: as they are named above.
  std::string_view mlp_of_decoder = {}, mlp_of_encoder = {};
  std::string_view cross_norm = {}, cross_query = {}, cross_key = {}, cross_value = {}, cross_out = {};
  // Weights of linear layers are [in, out].
  bool transposed = false;
};

struct Family {
  // The family's word: config.json's model_type, and `family` of a grid.
  std::string_view name;
  // model_type of models of text and images whose text_config is of this family; empty: there are none.
  std::string_view with_images = {};
  // Sizes that its config.json may leave out, as the family's configuration class has them: a JSON object.
  std::string_view defaults = "{}";
  // The family's class in transformers.
  std::string_view architecture;
  // Reads what is its own from config.json; vocab_size is read.
  void (*read)(ConfigReader&, ModelSpec&);

  // The block. These become members of ModelSpec (completed()).
  bool rms_norm = true, gated_mlp = true, rotary = true, attention_bias = false, linear_bias = false;
  bool experts = false;
  // Each head of the queries and of the keys passes a norm before the rotary positions (QK norm).
  bool qk_norm = false;
  // Multi-head latent attention, with first layers without experts and experts that all tokens go to.
  bool latent = false;
  // The router's scores are sigmoids, not a softmax, and a bias that no gradient changes takes part in the choice.
  bool sigmoid_router = false;
  // The router's logits stay in fp32 where rows and weights have 16 bits: its sums are not rounded to their type.
  bool exact_router = false;
  // The weights of a token's experts add up to routed_scaling.
  bool normalized_weights = true;
  bool post_norms() const { return !names.mlp_post_norm.empty(); }
  // Norms multiply by 1 + weight.
  bool norm_adds_one = false;
  // The MLP's gate passes GELU (tanh form) instead of SiLU.
  bool gelu_gate = false;
  // The experts' activation is SwiGLU of clamped halves (Activation::kClampedSwiglu of kernels/ops.h).
  bool clamped_swiglu = false;
  // Rotary positions may be stretched by YaRN.
  bool yarn = false;
  bool sinks() const { return !names.sinks.empty(); }
  // The MLP's GELU is exact, not its tanh form.
  bool exact_gelu = false;
  // The MLP's activation is ReLU.
  bool relu = false;
  // An encoder, and cross-attention in each decoder layer.
  bool cross_attention = false;
  // Embedded tokens are multiplied by the root of hidden_size, before learned positions are added.
  bool scales_embedding = false;
  // Positions are a learned number for each head and distance of query and key, which is added to the score (Raffel et
  // al. 2019, arXiv 1910.10683, section 2.1); scores are not divided by the root of head_dim.
  bool relative_positions = false;
  // If one table is both embedding and head, the head's input is divided by the root of hidden_size.
  bool scales_tied_head = false;

  TensorNames names = {};
};

// Rows of a table of relative positions, and the distance from which on all share the last one.
inline constexpr int kRelativeBuckets = 32, kRelativeDistance = 128;
// Elements of a table of positions; 0: the family has none.
i64 position_elements(const ModelSpec&);

// All families, in the order in which they are listed to people.
std::span<const Family* const> all_families();
// nullptr: no such family.
const Family* find_family(std::string_view name);
// The family of a model; an imported model without known dimensions counts as a llama.
const Family& family_of(const ModelSpec&);
// "llama, mistral, ..."
std::string family_names();

}  // namespace sweep::shape
