// The dense MLP half of a block: norm, gate and up (or one input layer), activation, down, residual.
#include <ATen/ATen.h>

#include "bench_kernels/model/tensor_parallel.h"

namespace sweep::model {
namespace {

struct MlpSaved final : Saved {
  at::Tensor x, h, in, low_in, low_down;
  kernels::NormStats stats;
  std::vector<at::Tensor*> tensors() override {
    return {&x, &h, &in, &low_in, &low_down, &stats.mean, &stats.rstd};
  }
};

class MlpUnit final : public Unit {
 public:
  MlpUnit(const StageContext& shared, std::int64_t layer) : Unit(shared) {
    const ModelSpec& s = spec();
    const shape::TensorNames& names = shape::family_of(s).names;
    const auto name = [&](std::string_view module) { return in_layer(s, layer, module); };
    norm_ = add_norm(shared, name(names.mlp_norm));
    const std::int64_t width = s.dense_width();
    const bool adapted = shared.options.adapters.mlp;
    std::vector<LinearPart> in;
    if (s.swiglu) in.push_back({name(names.gate), {width}, adapted});
    in.push_back({name(names.up), {width}, adapted});
    in_ =
        add_linear(shared, in, s.hidden_size, s.linear_bias, names.transposed && !s.swiglu, Split::kColumns);
    down_ = add_linear(shared, {{name(names.down), {s.hidden_size}, adapted}}, width, s.linear_bias,
                       names.transposed, Split::kRows);
    in_.fp8 = down_.fp8 = shared.options.fp8;
  }

  at::Tensor forward(const MicroBatch&, at::Tensor in, SavedPtr& saved) const override {
    auto kept = std::make_unique<MlpSaved>();
    MlpSaved& s = *kept;
    s.x = std::move(in);
    s.h = at::empty_like(s.x);
    const kernels::Start start = row_start(shared_, down_, s.x);
    s.stats = kernels::norm(s.x, norm_of(shared_, norm_), s.h, start);
    const std::int64_t rows = shared_.whole_rows(s.x.size(0)), held = width();
    s.in = at::empty({rows, spec().swiglu ? 2 * held : held}, s.x.options());
    s.low_in = column_forward(shared_, in_, s.h, s.in);
    const at::Tensor activated = at::empty({rows, held}, s.x.options());
    kernels::activation(kind(), s.in, activated);
    const at::Tensor out = start.out.defined() ? start.out : at::empty_like(s.x);
    s.low_down = row_forward(shared_, down_, activated, start.out.defined() ? out : s.x, out);
    saved = std::move(kept);
    return out;
  }

  at::Tensor backward(const MicroBatch&, at::Tensor grad, SavedPtr saved) const override {
    auto& s = static_cast<MlpSaved&>(*saved);
    {
      const at::Tensor wide = at::empty({s.in.size(0), width()}, s.x.options());
      auto whole = std::make_shared<WholeRows>(layout(), grad);
      LowRows low{std::move(s.low_down), row_backward_input(shared_, down_, *whole, wide)};
      kernels::activation_backward(kind(), s.in, wide);
      row_backward_weight(shared_, down_, std::move(whole), wide, low);
    }
    const at::Tensor dh = column_backward(shared_, in_, s.in, s.h, s.low_in);
    s.in.reset();
    backward_norm(shared_, norm_, dh, s.x, s.stats, grad, dh);
    return dh;
  }

 private:
  std::int64_t width() const { return spec().dense_width() / layout().tp(); }
  kernels::Activation kind() const {
    if (!spec().swiglu && shape::family_of(spec()).exact_gelu) return kernels::Activation::kGeluExact;
    if (!spec().swiglu) return kernels::Activation::kGelu;
    return shape::family_of(spec()).gelu_gate ? kernels::Activation::kGeglu : kernels::Activation::kSwiglu;
  }

  NormLayer norm_;
  Linear in_, down_;
};

}  // namespace

UnitPtr make_mlp(const StageContext& shared, std::int64_t layer) {
  return std::make_unique<MlpUnit>(shared, layer);
}

}  // namespace sweep::model
