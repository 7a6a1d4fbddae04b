// The cross-attention of a decoder layer: norm, queries of its rows, keys and values of the encoder's result, attention
// without a mask, output, residual (Vaswani et al. 2017, arXiv 1706.03762, section 3.2.3). And the end of the encoder,
// its last norm, which gives that result and takes the sum of the layers' gradients.
#include <ATen/ATen.h>

#include "bench_kernels/model/tensor_parallel.h"

namespace sweep::model {
namespace {

struct CrossSaved final : Saved {
  at::Tensor x, h;
  kernels::NormStats stats;
  at::Tensor packed;  // rows as kernels::attention takes them
  kernels::AttentionState state;
  std::vector<at::Tensor*> tensors() override {
    return {&x, &h, &packed, &stats.mean, &stats.rstd, &state.out, &state.saved};
  }
};

class CrossAttention final : public Unit {
 public:
  CrossAttention(const StageContext& shared, std::int64_t layer) : Unit(shared) {
    const ModelSpec& s = spec();
    const shape::TensorNames& names = shape::family_of(s).names;
    const auto name = [&](std::string_view module) { return in_layer(s, layer, module); };
    const std::int64_t n = s.heads * s.head_dim;
    norm_ = add_norm(shared, name(names.cross_norm));
    query_ = add_linear(shared, {{name(names.cross_query), {n}}}, s.hidden_size, s.attention_bias, false,
                        Split::kColumns);
    key_value_ = add_linear(shared, {{name(names.cross_key), {n}}, {name(names.cross_value), {n}}},
                            s.hidden_size, s.attention_bias, false, Split::kColumns);
    out_ =
        add_linear(shared, {{name(names.cross_out), {s.hidden_size}}}, n, s.linear_bias, false, Split::kRows);
  }

  at::Tensor forward(const MicroBatch&, at::Tensor in, SavedPtr& saved) const override {
    auto kept = std::make_unique<CrossSaved>();
    CrossSaved& s = *kept;
    s.x = std::move(in);
    s.h = at::empty_like(s.x);
    const kernels::Start start = row_start(shared_, out_, s.x);
    s.stats = kernels::norm(s.x, norm_of(shared_, norm_), s.h, start);
    const at::Tensor& encoded = shared_.encoded->rows;
    s.packed = at::empty({width() * (s.x.size(0) + 2 * encoded.size(0))}, s.x.options());
    column_forward(shared_, query_, s.h, queries(s.packed, s.x));
    column_forward(shared_, key_value_, encoded, keys_values(s.packed, s.x));
    s.state = kernels::attention(s.packed, shape(s.x), {});
    const at::Tensor out = start.out.defined() ? start.out : at::empty_like(s.x);
    row_forward(shared_, out_, s.state.out, start.out.defined() ? out : s.x, out);
    if (shared_.options.recompute == Recompute::kSelective) s.state = {};
    saved = std::move(kept);
    return out;
  }

  at::Tensor backward(const MicroBatch&, at::Tensor grad, SavedPtr saved) const override {
    auto& s = static_cast<CrossSaved&>(*saved);
    if (!s.state.out.defined()) s.state = kernels::attention(s.packed, shape(s.x), {});
    at::Tensor dout = at::empty_like(s.state.out);
    {
      auto whole = std::make_shared<WholeRows>(layout(), grad);
      row_backward_input(shared_, out_, *whole, dout);
      row_backward_weight(shared_, out_, std::move(whole), s.state.out);
    }
    const at::Tensor dpacked = at::empty_like(s.packed);
    kernels::attention_backward(dout, s.packed, shape(s.x), s.state, dpacked);
    dout.reset(), s.packed.reset(), s.state = {};
    encoded_backward(keys_values(dpacked, s.x));
    const at::Tensor dh = column_backward(shared_, query_, queries(dpacked, s.x), s.h);
    backward_norm(shared_, norm_, dh, s.x, s.stats, grad, dh);
    return dh;
  }

 private:
  std::int64_t width() const { return spec().heads * spec().head_dim; }
  at::Tensor queries(const at::Tensor& packed, const at::Tensor& x) const {
    return packed.narrow(0, 0, x.size(0) * width()).view({x.size(0), width()});
  }
  at::Tensor keys_values(const at::Tensor& packed, const at::Tensor& x) const {
    const std::int64_t first = x.size(0) * width();
    return packed.narrow(0, first, packed.size(0) - first).view({-1, 2 * width()});
  }
  // Weights' gradients, and what this layer adds to the gradient of the encoder's result.
  void encoded_backward(const at::Tensor& grad) const {
    const Parameters& p = parameters();
    Encoded& encoded = *shared_.encoded;
    kernels::linear_backward_weight(grad, encoded.rows, false, p.gradients().of_product(key_value_.weight));
    if (key_value_.bias != Parameters::kNone) kernels::bias_backward(grad, p.gradients().of(key_value_.bias));
    say_ready(p, key_value_);
    const bool adds = encoded.gradient.defined();
    if (!adds) encoded.gradient = at::empty_like(encoded.rows);
    kernels::scaled_product(grad, p[key_value_.weight], 1, encoded.gradient, adds);
  }
  kernels::AttentionShape shape(const at::Tensor& x) const {
    const std::int64_t seq = shared_.local_seq(), heads = spec().heads;
    return {x.size(0) / seq,
            seq,
            heads,
            heads,
            spec().head_dim,
            shared_.options.attention,
            {},
            nullptr,
            /*autocast=*/false,
            /*causal=*/false,
            shared_.options.encoder_seq_len,
            {},
            {},
            !shape::family_of(spec()).relative_positions};
  }

  NormLayer norm_;
  Linear query_, key_value_, out_;
};

struct EndSaved final : Saved {
  at::Tensor x;
  kernels::NormStats stats;
  std::vector<at::Tensor*> tensors() override { return {&x, &stats.mean, &stats.rstd}; }
};

class EncoderEnd final : public Unit {
 public:
  explicit EncoderEnd(const StageContext& shared)
      : Unit(shared), norm_(add_norm(shared, std::string(shape::family_of(spec()).names.encoder_norm))) {}

  // The result is undefined: what follows is the decoder's embedding.
  at::Tensor forward(const MicroBatch&, at::Tensor in, SavedPtr& saved) const override {
    auto kept = std::make_unique<EndSaved>();
    kept->x = std::move(in);
    shared_.encoded->rows = at::empty_like(kept->x);
    kept->stats = kernels::norm(kept->x, norm_of(shared_, norm_), shared_.encoded->rows);
    saved = std::move(kept);
    return {};
  }

  at::Tensor backward(const MicroBatch&, at::Tensor, SavedPtr saved) const override {
    auto& s = static_cast<EndSaved&>(*saved);
    shared_.encoded->rows.reset();
    const at::Tensor grad = std::exchange(shared_.encoded->gradient, {});
    backward_norm(shared_, norm_, grad, s.x, s.stats, {}, grad);
    return grad;
  }

 private:
  NormLayer norm_;
};

}  // namespace

UnitPtr make_cross_attention(const StageContext& shared, std::int64_t layer) {
  return std::make_unique<CrossAttention>(shared, layer);
}

UnitPtr make_encoder_end(const StageContext& shared) {
  return std::make_unique<EncoderEnd>(shared);
}

}  // namespace sweep::model
