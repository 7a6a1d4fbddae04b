// The dense MLP half of a block: norm, gate and up (or one input layer), activation, down, residual.
#include <ATen/ATen.h>

#include "bench_kernels/model/layers.h"

namespace sweep::model {
namespace {

struct MlpSaved final : Saved {
  at::Tensor x, h, in;
  kernels::NormStats stats;
};

class MlpUnit final : public Unit {
 public:
  MlpUnit(const Shared& shared, std::int64_t layer) : Unit(shared) {
    const ModelSpec& s = spec();
    const auto name = [&](const char* llama, const char* gpt2) { return in_block(s, layer, llama, gpt2); };
    const bool conv = is_gpt2(s);
    norm_ = add_norm(shared, name("post_attention_layernorm", "ln_2"));
    if (s.swiglu) {
      in_ = add_linear(parameters(),
                       {{name("mlp.gate_proj", "mlp.gate_proj"), s.intermediate_size, {}},
                        {name("mlp.up_proj", "mlp.up_proj"), s.intermediate_size, {}}},
                       s.hidden_size, s.linear_bias, false);
    } else {
      in_ = add_linear(parameters(), {{name("mlp.up_proj", "mlp.c_fc"), s.intermediate_size, {}}},
                       s.hidden_size, s.linear_bias, conv);
    }
    down_ = add_linear(parameters(), {{name("mlp.down_proj", "mlp.c_proj"), s.hidden_size, {}}},
                       s.intermediate_size, s.linear_bias, conv);
  }

  at::Tensor forward(const MicroStep&, at::Tensor in, SavedPtr& saved) const override {
    auto kept = std::make_unique<MlpSaved>();
    MlpSaved& s = *kept;
    s.x = std::move(in);
    s.h = at::empty_like(s.x);
    s.stats = kernels::norm(s.x, norm_of(shared_, norm_), s.h);
    const std::int64_t width = spec().intermediate_size;
    s.in = at::empty({s.x.size(0), spec().swiglu ? 2 * width : width}, s.x.options());
    kernels::linear(s.h, in_.value(parameters()), {}, s.in);
    const at::Tensor activated = at::empty({s.x.size(0), width}, s.x.options());
    kernels::activation(kind(), s.in, activated);
    const at::Tensor out = at::empty_like(s.x);
    kernels::linear(activated, down_.value(parameters()), s.x, out);
    saved = std::move(kept);
    return out;
  }

  at::Tensor backward(const MicroStep&, at::Tensor grad, SavedPtr saved) const override {
    auto& s = static_cast<MlpSaved&>(*saved);
    {
      const at::Tensor wide = at::empty({s.x.size(0), spec().intermediate_size}, s.x.options());
      kernels::linear_backward_input(grad, down_.value(parameters()), wide);
      kernels::activation_backward(kind(), s.in, wide);
      backward_weight(parameters(), down_, grad, wide);
    }
    backward_weight(parameters(), in_, s.in, s.h);
    kernels::linear_backward_input(s.in, in_.value(parameters()), s.h);
    s.in.reset();
    backward_norm(shared_, norm_, s.h, s.x, s.stats, grad, s.h);
    return std::move(s.h);
  }

 private:
  kernels::Activation kind() const {
    return spec().swiglu ? kernels::Activation::kSwiglu : kernels::Activation::kGelu;
  }

  NormLayer norm_;
  Linear in_, down_;
};

}  // namespace

UnitPtr make_mlp(const Shared& shared, std::int64_t layer) {
  return std::make_unique<MlpUnit>(shared, layer);
}

}  // namespace sweep::model
