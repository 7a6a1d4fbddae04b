#include "bench_kernels/model/layers.h"

namespace sweep::model {

bool is_gpt2(const ModelSpec& spec) {
  return spec.family == "gpt2";
}

std::string in_block(const ModelSpec& spec, std::int64_t layer, const char* llama, const char* gpt2) {
  return (is_gpt2(spec) ? "transformer.h." : "model.layers.") + std::to_string(layer) + "." +
         (is_gpt2(spec) ? gpt2 : llama);
}

Linear add_linear(Parameters& parameters, const std::vector<Parameters::Part>& parts, std::int64_t inputs,
                  bool bias, bool transposed) {
  Linear linear;
  linear.transposed = transposed;
  std::vector<Parameters::Part> weights, biases;
  for (const auto& part : parts) {
    weights.push_back({part.name + ".weight", transposed ? inputs : part.rows, part.slice});
    biases.push_back({part.name + ".bias", part.rows, part.slice});
  }
  linear.weight = parameters.add(weights, transposed ? parts[0].rows : inputs, Parameters::Init::kUniform);
  if (bias) linear.bias = parameters.add(biases, 0, Parameters::Init::kZero);
  return linear;
}

NormLayer add_norm(const Shared& shared, const std::string& name) {
  const std::int64_t n = shared.spec.hidden_size;
  NormLayer norm;
  norm.w = shared.parameters->add({{name + ".weight", n, {}}}, 0, Parameters::Init::kOne);
  if (!shared.spec.rmsnorm)
    norm.b = shared.parameters->add({{name + ".bias", n, {}}}, 0, Parameters::Init::kZero);
  return norm;
}

kernels::Norm norm_of(const Shared& shared, const NormLayer& norm) {
  const Parameters& p = *shared.parameters;
  return {p[norm.w], norm.b == Parameters::kNone ? at::Tensor() : p[norm.b], shared.spec.norm_eps};
}

void backward_weight(const Parameters& parameters, const Linear& linear, const at::Tensor& dout,
                     const at::Tensor& in) {
  kernels::linear_backward_weight(dout, in, linear.transposed, parameters.grad(linear.weight));
  parameters.ready(linear.weight);
  if (linear.bias == Parameters::kNone) return;
  kernels::bias_backward(dout, parameters.grad(linear.bias));
  parameters.ready(linear.bias);
}

void backward_norm(const Shared& shared, const NormLayer& norm, const at::Tensor& dy, const at::Tensor& x,
                   const kernels::NormStats& stats, const at::Tensor& residual, const at::Tensor& dx) {
  const Parameters& p = *shared.parameters;
  const bool has_bias = norm.b != Parameters::kNone;
  kernels::norm_backward(dy, x, norm_of(shared, norm), stats, residual, dx, p.grad(norm.w),
                         has_bias ? p.grad(norm.b) : kernels::GradOut());
  p.ready(norm.w);
  if (has_bias) p.ready(norm.b);
}

}  // namespace sweep::model
