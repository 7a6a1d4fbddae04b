// The dense MLP half of a block: norm, gate and up (or one input layer), activation, down, residual.
#include <ATen/ATen.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "bench_kernels/kernels/autocast.h"
#include "bench_kernels/model/post_norm.h"
#include "bench_kernels/model/tensor_parallel.h"

namespace sweep::model {
namespace {

struct MlpSaved final : Saved {
  at::Tensor x, h, in, low_in, low_down;
  kernels::EagerActivation eager;  // under autocast, instead of in
  kernels::NormStats stats;
  PostNorm::Kept post;
  std::vector<at::Tensor*> tensors() override {
    std::vector<at::Tensor*> all{&x, &h, &in, &low_in, &low_down, &stats.mean, &stats.rstd, &eager.out};
    std::ranges::transform(eager.kept, std::back_inserter(all), [](at::Tensor& one) { return &one; });
    std::ranges::copy(post.tensors(), std::back_inserter(all));
    return all;
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
    post_norm_.emplace(shared, layer, names.mlp_post_norm);
  }

  at::Tensor forward(const MicroBatch&, at::Tensor in, SavedPtr& saved) const override {
    auto kept = std::make_unique<MlpSaved>();
    MlpSaved& s = *kept;
    s.x = std::move(in);
    const at::Tensor x = s.x;
    s.h = at::empty_like(x);
    const kernels::Start start = post_norm_->there() ? kernels::Start() : row_start(shared_, down_, x);
    s.stats = forward_norm(shared_, norm_, s.x, s.h, start);
    s.in = at::empty({shared_.whole_rows(x.size(0)), (spec().swiglu ? 2 : 1) * width()}, x.options());
    s.low_in = column_forward(shared_, in_, s.h, s.in);
    at::Tensor activated = activate(s);
    at::Tensor out = start.out.defined() ? start.out : at::empty_like(x);
    const at::Tensor residual = post_norm_->there() ? at::Tensor() : start.out.defined() ? out : x;
    s.low_down = row_forward(shared_, down_, activated, residual, out);
    activated.reset();
    out = post_norm_->forward(std::move(out), x, s.post);
    saved = std::move(kept);
    return out;
  }

  at::Tensor backward(const MicroBatch&, at::Tensor grad, SavedPtr saved) const override {
    auto& s = static_cast<MlpSaved&>(*saved);
    {
      at::Tensor wide = at::empty({shared_.whole_rows(grad.size(0)), width()}, grad.options());
      auto whole = std::make_shared<WholeRows>(layout(), post_norm_->backward(grad, s.post));
      LowRows low{std::move(s.low_down), row_backward_input(shared_, down_, *whole, wide)};
      activate_backward(s, wide);
      row_backward_weight(shared_, down_, std::move(whole), wide, low);
    }
    const at::Tensor dh = column_backward(shared_, in_, s.in, s.h, s.low_in);
    s.in.reset();
    backward_norm(shared_, norm_, dh, s.x, s.stats, grad, dh);
    return dh;
  }

 private:
  at::Tensor activate(MlpSaved& s) const {
    if (!shared_.options.autocast) {
      const at::Tensor activated = at::empty({s.in.size(0), width()}, s.in.options());
      kernels::activation(kind(), s.in, activated);
      return activated;
    }
    s.eager = kernels::eager_activation(kind(), std::move(s.in));
    return s.eager.out;
  }
  // s.in becomes its gradient; wide, the gradient of what was activated, becomes that again.
  void activate_backward(MlpSaved& s, at::Tensor& wide) const {
    if (!shared_.options.autocast) return kernels::activation_backward(kind(), s.in, wide);
    s.in = kernels::eager_activation_backward(kind(), std::move(s.eager.kept), wide);
    wide = std::move(s.eager.out);
  }
  std::int64_t width() const { return spec().dense_width() / layout().tp(); }
  kernels::Activation kind() const {
    const shape::Family& family = shape::family_of(spec());
    if (spec().swiglu) return family.gelu_gate ? kernels::Activation::kGeglu : kernels::Activation::kSwiglu;
    if (family.relu) return kernels::Activation::kRelu;
    return family.exact_gelu ? kernels::Activation::kGeluExact : kernels::Activation::kGelu;
  }

  NormLayer norm_;
  Linear in_, down_;
  std::optional<PostNorm> post_norm_;
};

}  // namespace

UnitPtr make_mlp(const StageContext& shared, std::int64_t layer) {
  return std::make_unique<MlpUnit>(shared, layer);
}

}  // namespace sweep::model
