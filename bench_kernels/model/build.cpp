// Building a Transformer: names and shapes of its parameters, and the position tables.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "bench_kernels/model/transformer.h"

namespace sweep::model {

namespace {

bool is_gpt2(const ModelSpec& s) {
  return s.family == "gpt2";
}

std::string in_block(const ModelSpec& s, std::int64_t layer, const char* llama, const char* gpt2) {
  return (is_gpt2(s) ? "transformer.h." : "model.layers.") + std::to_string(layer) + "." +
         (is_gpt2(s) ? gpt2 : llama);
}

// Inverse frequencies, in float as the reference implementations compute them; with Llama 3.1's scaling:
// wavelengths beyond the trained range are stretched by `factor`, those well inside kept, those between
// blended.
std::vector<float> inverse_frequencies(const ModelSpec& s) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < s.head_dim; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(s.head_dim);
    out.push_back(1.0f / static_cast<float>(std::pow(s.rope_theta, static_cast<double>(exponent))));
  }
  if (!s.rope_scaling) return out;
  const RopeScaling& r = *s.rope_scaling;
  const double longest = static_cast<double>(r.original_max_positions);
  for (float& f : out) {
    const double wavelength = 2 * M_PI / f;
    if (wavelength > longest / r.low_freq_factor) {
      f = static_cast<float>(f / r.factor);
    } else if (wavelength >= longest / r.high_freq_factor) {
      const double smooth =
          (longest / wavelength - r.low_freq_factor) / (r.high_freq_factor - r.low_freq_factor);
      f = static_cast<float>((1 - smooth) * f / r.factor + smooth * f);
    }
  }
  return out;
}

}  // namespace

Linear Transformer::add_linear(const std::vector<Parameters::Part>& parts, std::int64_t inputs, bool bias,
                               bool transposed) {
  Linear linear;
  linear.transposed = transposed;
  std::vector<Parameters::Part> weights, biases;
  for (const auto& part : parts) {
    weights.push_back({part.name + ".weight", transposed ? inputs : part.rows});
    biases.push_back({part.name + ".bias", part.rows});
  }
  linear.weight =
      parameters_.add_stack(weights, transposed ? parts[0].rows : inputs, Parameters::Init::kUniform);
  if (bias) linear.bias = parameters_.add_stack(biases, 0, Parameters::Init::kZero);
  return linear;
}

NormLayer Transformer::add_norm(const std::string& name) {
  NormLayer norm;
  norm.w = parameters_.add(name + ".weight", {spec_.hidden_size}, Parameters::Init::kOne);
  if (!spec_.rmsnorm) norm.b = parameters_.add(name + ".bias", {spec_.hidden_size}, Parameters::Init::kZero);
  return norm;
}

void Transformer::add_block(std::int64_t layer) {
  const ModelSpec& s = spec_;
  const auto name = [&](const char* llama, const char* gpt2) { return in_block(s, layer, llama, gpt2); };
  const std::int64_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  const bool conv = is_gpt2(s);  // one fused q, k, v tensor, weights [in, out]
  Block block;
  block.attention_norm = add_norm(name("input_layernorm", "ln_1"));
  if (conv) {
    block.qkv = add_linear({{name("", "attn.c_attn"), q + 2 * kv}}, s.hidden_size, s.attention_bias, true);
  } else {
    block.qkv = add_linear({{name("self_attn.q_proj", ""), q},
                            {name("self_attn.k_proj", ""), kv},
                            {name("self_attn.v_proj", ""), kv}},
                           s.hidden_size, s.attention_bias, false);
  }
  block.out = add_linear({{name("self_attn.o_proj", "attn.c_proj"), s.hidden_size}}, q, s.linear_bias, conv);
  block.mlp_norm = add_norm(name("post_attention_layernorm", "ln_2"));
  if (s.swiglu) {
    block.in = add_linear({{name("mlp.gate_proj", "mlp.gate_proj"), s.intermediate_size},
                           {name("mlp.up_proj", "mlp.up_proj"), s.intermediate_size}},
                          s.hidden_size, s.linear_bias, false);
  } else {
    block.in = add_linear({{name("mlp.up_proj", "mlp.c_fc"), s.intermediate_size}}, s.hidden_size,
                          s.linear_bias, conv);
  }
  block.down = add_linear({{name("mlp.down_proj", "mlp.c_proj"), s.hidden_size}}, s.intermediate_size,
                          s.linear_bias, conv);
  blocks_.push_back(block);
}

void Transformer::make_tables() {
  const auto type = at::TensorOptions(options_.device).dtype(kernels::accumulate_type(options_.type));
  mask_ = kernels::window_mask(attention_shape(1), at::TensorOptions(options_.device).dtype(options_.type));
  if (!spec_.rope) return;
  const std::int64_t half = spec_.head_dim / 2;
  cos_ = at::empty({options_.seq_len, half}, type);
  sin_ = at::empty_like(cos_);
  if (options_.device.is_meta()) return;
  std::vector<double> cosines, sines;
  const std::vector<float> frequencies = inverse_frequencies(spec_);
  for (std::int64_t position = 0; position < options_.seq_len; ++position) {
    for (const float f : frequencies) {
      const auto angle = static_cast<double>(static_cast<float>(position) * f);
      cosines.push_back(std::cos(angle));
      sines.push_back(std::sin(angle));
    }
  }
  cos_.copy_(at::from_blob(cosines.data(), cos_.sizes(), at::kDouble));
  sin_.copy_(at::from_blob(sines.data(), sin_.sizes(), at::kDouble));
}

Transformer::Transformer(const ModelSpec& spec, const Options& options)
    : spec_(spec),
      options_(options),
      parameters_(at::TensorOptions(options.device).dtype(options.type), options.seed) {
  const at::NoGradGuard no_grad;
  const bool gpt2 = is_gpt2(spec);
  table_ = parameters_.add(gpt2 ? "transformer.wte.weight" : "model.embed_tokens.weight",
                           {spec.vocab_size, spec.hidden_size}, Parameters::Init::kUniform);
  if (!spec.rope) {
    positions_ = parameters_.add(gpt2 ? "transformer.wpe.weight" : "model.embed_positions.weight",
                                 {spec.max_positions, spec.hidden_size}, Parameters::Init::kUniform);
  }
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) add_block(layer);
  final_norm_ = add_norm(gpt2 ? "transformer.ln_f" : "model.norm");
  if (spec.tie_embeddings)
    head_.weight = {{table_}, parameters_[table_].detach()};
  else
    head_ = add_linear({{"lm_head", spec.vocab_size}}, spec.hidden_size, false, false);
  make_tables();
}

}  // namespace sweep::model
