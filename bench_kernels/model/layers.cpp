#include "bench_kernels/model/layers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "bench_kernels/kernels/autocast.h"

namespace sweep::model {

std::string in_layer(const ModelSpec& spec, std::int64_t layer, std::string_view module) {
  const shape::TensorNames& names = shape::family_of(spec).names;
  const bool encoder = layer < spec.encoder_layers;
  std::string name(encoder ? names.encoder_layers : names.layers);
  name += std::to_string(encoder ? layer : layer - spec.encoder_layers) + ".";
  if (encoder && !names.mlp_of_decoder.empty() && module.starts_with(names.mlp_of_decoder)) {
    name += names.mlp_of_encoder;
    module.remove_prefix(names.mlp_of_decoder.size());
  }
  return name.append(module);
}

namespace {

// Outputs of a part that this rank holds, and where they stand.
Slice output_share(const Layout& layout, const LinearPart& part, std::int64_t dimension) {
  if (layout.tp() == 1) return {};
  Slice slice;
  std::int64_t begin = 0;
  for (const std::int64_t section : part.sections) {
    const auto [first, size] = tensor_share(layout, dimension, section).ranges[0];
    slice.ranges.emplace_back(begin + first, size);
    begin += section;
  }
  slice.dimension = dimension;
  slice.whole = begin;
  return slice;
}

std::int64_t outputs_of(const LinearPart& part) {
  return std::accumulate(part.sections.begin(), part.sections.end(), std::int64_t{0});
}

Adapter add_adapter(const StageContext& shared, const std::vector<LinearPart>& parts, std::int64_t inputs,
                    Split split) {
  const Layout& layout = shared.layout;
  const bool columns = split == Split::kColumns, rows = split == Split::kRows;
  Adapter adapter;
  adapter.rank = shared.options.adapters.rank, adapter.scale = shared.options.adapters.scale;
  std::vector<Part> a, b;
  std::int64_t column = 0;
  for (const LinearPart& part : parts) {
    const std::int64_t outputs = outputs_of(part) / (columns ? layout.tp() : 1);
    if (part.adapted) {
      a.push_back(
          {part.name + ".lora_A.weight", adapter.rank, rows ? tensor_share(layout, 1, inputs) : Slice()});
      b.push_back({part.name + ".lora_B.weight", outputs, columns ? output_share(layout, part, 0) : Slice()});
      adapter.pieces.push_back({column, outputs});
    }
    column += outputs;
  }
  if (a.empty()) return adapter;
  const bool divided = layout.tp() > 1 && split != Split::kNone;
  Parameters& p = *shared.parameters;
  adapter.a = p.add_trained(std::move(a), rows ? inputs / layout.tp() : inputs, Init::kUniform,
                            divided && columns ? Role::kPartial : Role::kDense);
  adapter.b =
      p.add_trained(std::move(b), adapter.rank, Init::kZero, divided && rows ? Role::kPartial : Role::kDense);
  return adapter;
}

}  // namespace

Slice tensor_share(const Layout& layout, std::int64_t dimension, std::int64_t size) {
  if (layout.tp() == 1) return {};
  const std::int64_t share = size / layout.tp();
  return {dimension, size, {{layout.tensor->rank() * share, share}}};
}

Part vocabulary_part(const StageContext& shared, const std::string& name) {
  const Layout& layout = shared.layout;
  const std::int64_t size = shared.spec.vocab_size, share = shared.vocabulary_rows();
  const std::int64_t begin = layout.tensor->rank() * share, real = std::min(share, size - begin);
  Part part{name, share, {}, share - real};
  if (layout.tp() > 1) part.slice = {0, size, {{begin, real}}};
  return part;
}

kernels::FirstEntry first_entry(const StageContext& shared) {
  if (shared.layout.tp() == 1) return {};
  return shared.layout.tensor->rank() * shared.vocabulary_rows();
}

Linear add_linear(const StageContext& shared, const std::vector<LinearPart>& parts, std::int64_t inputs,
                  bool bias, bool transposed, Split split) {
  const Layout& layout = shared.layout;
  const bool columns = split == Split::kColumns, rows = split == Split::kRows;
  const std::int64_t held = rows ? inputs / layout.tp() : inputs;
  std::vector<Part> weights, biases;
  std::int64_t outputs = 0;
  for (const LinearPart& part : parts) {
    outputs = outputs_of(part) / (columns ? layout.tp() : 1);
    Slice slice;
    if (columns) slice = output_share(layout, part, transposed ? 1 : 0);
    if (rows) slice = tensor_share(layout, transposed ? 0 : 1, inputs);
    weights.push_back({part.name + ".weight", transposed ? held : outputs, slice});
    biases.push_back({part.name + ".bias", outputs, columns ? output_share(layout, part, 0) : Slice()});
  }
  Linear linear;
  linear.transposed = transposed;
  linear.weight = shared.parameters->add(weights, transposed ? outputs : held, Init::kUniform);
  if (shared.options.quantize_base) shared.parameters->quantize(linear.weight);
  if (bias) linear.bias = shared.parameters->add(biases, 0, Init::kZero);
  if (shared.options.adapters.any()) linear.adapter = add_adapter(shared, parts, inputs, split);
  return linear;
}

namespace {

// DeepSeek's, whatever rms_norm_eps is (transformers, modeling_deepseek_v2.py and _v3.py).
constexpr double kLatentNormEps = 1e-6;

NormLayer add_norm_over(const StageContext& shared, const std::string& name, std::int64_t n, Role role) {
  NormLayer norm;
  const bool adds_one = shape::family_of(shared.spec).norm_adds_one;
  norm.w = shared.parameters->add({{name + ".weight", n, {}}}, 0, adds_one ? Init::kZero : Init::kOne, role);
  if (!shared.spec.rmsnorm) norm.b = shared.parameters->add({{name + ".bias", n, {}}}, 0, Init::kZero, role);
  return norm;
}

}  // namespace

NormLayer add_norm(const StageContext& shared, const std::string& name) {
  return add_norm_over(shared, name, shared.spec.hidden_size,
                       shared.layout.rows_split() ? Role::kPartial : Role::kDense);
}

NormLayer add_head_norm(const StageContext& shared, const std::string& name) {
  return add_norm_over(shared, name, shared.spec.head_dim,
                       shared.layout.tp() > 1 ? Role::kPartial : Role::kDense);
}

NormLayer add_latent_norm(const StageContext& shared, const std::string& name, std::int64_t n) {
  NormLayer norm = add_norm_over(shared, name, n, Role::kDense);
  norm.eps = kLatentNormEps;
  return norm;
}

kernels::Norm norm_of(const StageContext& shared, const NormLayer& norm) {
  const Parameters& p = *shared.parameters;
  return {p[norm.w], norm.b == Parameters::kNone ? at::Tensor() : p[norm.b],
          norm.eps.value_or(shared.spec.norm_eps), shape::family_of(shared.spec).norm_adds_one ? 1.0 : 0.0};
}

kernels::NormStats forward_norm(const StageContext& shared, const NormLayer& norm, at::Tensor& x,
                                const at::Tensor& h, const kernels::Start& start) {
  if (!shared.options.autocast) return kernels::norm(x, norm_of(shared, norm), h, start);
  x = x.to(at::kFloat);
  return kernels::eager_norm(x, norm_of(shared, norm), h);
}

void say_ready(const Parameters& parameters, const Linear& linear) {
  if (!linear.shared) parameters.gradients().ready(linear.weight);
  if (linear.bias != Parameters::kNone) parameters.gradients().ready(linear.bias);
}

void backward_norm(const StageContext& shared, const NormLayer& norm, const at::Tensor& dy,
                   const at::Tensor& x, const kernels::NormStats& stats, const at::Tensor& residual,
                   const at::Tensor& dx) {
  const Parameters& p = *shared.parameters;
  const bool has_bias = norm.b != Parameters::kNone;
  if (!p.trains(norm.w)) {  // the kernel writes these gradients in any case; nobody reads them
    const kernels::GradOut dw{at::empty_like(p[norm.w]), false};
    const kernels::GradOut db{has_bias ? at::empty_like(p[norm.b]) : at::Tensor(), false};
    return kernels::norm_backward(dy, x, norm_of(shared, norm), stats, residual, dx, dw, db);
  }
  if (!shared.later) {
    const auto backward = shared.options.autocast ? kernels::eager_norm_backward : kernels::norm_backward;
    backward(dy, x, norm_of(shared, norm), stats, residual, dx, p.gradients().of(norm.w),
             has_bias ? p.gradients().of(norm.b) : kernels::GradOut());
    p.gradients().ready(norm.w);
    if (has_bias) p.gradients().ready(norm.b);
    return;
  }
  const at::Tensor dw = at::empty_like(p[norm.w]), db = has_bias ? at::empty_like(p[norm.b]) : at::Tensor();
  kernels::norm_backward(dy, x, norm_of(shared, norm), stats, residual, dx, {dw, false}, {db, false});
  shared.later->emplace_back([&p, &norm, dw, db] {
    kernels::put(p.gradients().of(norm.w), dw);
    p.gradients().ready(norm.w);
    if (!db.defined()) return;
    kernels::put(p.gradients().of(norm.b), db);
    p.gradients().ready(norm.b);
  });
}

at::Tensor room_over(const StageContext& shared, const at::Tensor& read) {
  return shared.later ? at::empty_like(read) : read;
}

}  // namespace sweep::model
