#include "bench_kernels/model/shared_experts.h"

#include <ATen/ATen.h>

namespace sweep::model {

SharedExperts::SharedExperts(const StageContext& shared, std::int64_t layer)
    : shared_(shared), there_(shared.spec.shared_experts > 0) {
  if (!there_) return;
  const ModelSpec& s = shared.spec;
  const shape::TensorNames& names = shape::family_of(s).names;
  const std::string prefix = in_layer(s, layer, names.shared_experts);
  const auto name = [&](std::string_view matrix) { return prefix + std::string(matrix); };
  in_ = add_linear(
      shared, {{name(names.expert_gate), {s.shared_width()}}, {name(names.expert_up), {s.shared_width()}}},
      s.hidden_size, false, false, Split::kColumns);
  down_ = add_linear(shared, {{name(names.expert_down), {s.hidden_size}}}, s.shared_width(), false, false,
                     Split::kRows);
}

at::Tensor SharedExperts::forward(const at::Tensor& h, const at::Tensor& sum) const {
  if (!there_) return {};
  const std::int64_t width = shared_.spec.shared_width() / shared_.layout.tp();
  const at::Tensor in = at::empty({h.size(0), 2 * width}, h.options());
  kernels::linear(h, in_.value(*shared_.parameters), {}, in);
  const at::Tensor activated = at::empty({h.size(0), width}, h.options());
  kernels::activation(kernels::Activation::kSwiglu, in, activated);
  kernels::linear(activated, down_.value(*shared_.parameters), sum, sum);
  return in;
}

void SharedExperts::backward_weight(const Linear& linear, const at::Tensor& dout,
                                    const at::Tensor& in) const {
  const Parameters& p = *shared_.parameters;
  if (!p.trains(linear.weight)) return;
  weights_part(shared_, [&p, &linear, dout, in] {
    kernels::linear_backward_weight(dout, in, false, p.gradients().of_product(linear.weight));
    say_ready(p, linear);
  });
}

void SharedExperts::backward(const at::Tensor& grad, const at::Tensor& h, at::Tensor in,
                             const at::Tensor& dh) const {
  if (!there_) return;
  {
    const at::Tensor wide = at::empty({in.size(0), in.size(1) / 2}, in.options());
    kernels::linear_backward_input(grad, down_.value(*shared_.parameters), wide);
    kernels::activation_backward(kernels::Activation::kSwiglu, in, wide);  // wide: the activation again
    backward_weight(down_, grad, wide);
  }
  backward_weight(in_, in, h);
  kernels::scaled_product(in, (*shared_.parameters)[in_.weight], 1, dh, true);
}

}  // namespace sweep::model
