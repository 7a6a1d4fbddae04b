// Cross-attention and the end of the encoder: model/cross_attention.cpp.
#include "bench_kernels/shape/unit_memory.h"

namespace sweep::shape {

using namespace moments;

namespace {

class CrossAttention {
 public:
  CrossAttention(const StepSizes& s, const UnitWeights& w, bool first) : s_(s), w_(w), first_(first) {
    const double keys = s.rows.batch * s.rows.encoder_seq;
    result_ = s.of_rows(s.dims.query), half_ = s.element * keys * s.dims.query;
    packed_ = result_ + 2 * half_;
    scores_ = s.of_rows(s.dims.heads * s.rows.encoder_seq);
    lse_ = s.sums(s.rows.whole * s.dims.heads);
  }
  UnitMemory memory() const {
    return of_passes([this](Moments& m) { forward(m); }, [this](Moments& m) { backward(m); });
  }

 private:
  double saved() const { return s_.kernels.flash ? lse_ : scores_; }
  void core(Moments& m) const {
    m.take(kKept, result_), m.take(kKept, saved());
    if (!s_.kernels.flash && s_.kernels.gpu) m.moment({{kPassing, result_}, {kPassing, half_}});
  }
  void forward(Moments& m) const {
    m.take(kKept, s_.residual());
    norm(s_, m);
    if (s_.kernels.norm_starts) m.take(kKept, s_.residual());
    m.take(kKept, packed_);
    core(m);
    m.moment(kKept, s_.kernels.norm_starts ? 0 : s_.residual());
    if (s_.kernels.norm_starts) m.give(kKept, s_.residual());
    if (s_.block.selective) m.give(kKept, result_), m.give(kKept, saved());
  }
  void core_backward(Moments& m) const {
    if (s_.kernels.flash && s_.kernels.gpu)
      m.moment(
          {{kPassing, packed_}, {kPassing, s_.sums(s_.rows.whole * s_.dims.heads * (s_.dims.head_dim + 1))}});
    if (!s_.kernels.flash && s_.kernels.gpu) {
      m.moment({{kPassing, 3 * result_}, {kPassing, lse_}});
      m.moment({{kPassing, scores_}, {kPassing, 2 * result_ + half_}, {kPassing, lse_}});
    }
    if (!s_.kernels.flash && !s_.kernels.gpu)
      m.moment({{kPassing, scores_ / s_.rows.batch}, {kPassing, half_ / s_.rows.batch}});
  }
  void backward(Moments& m) const {
    m.take(kPassing, s_.residual());  // the gradient that comes in
    if (s_.block.selective) core(m);
    m.take(kPassing, result_);  // its gradient
    m.moment(kBuffer, staged_product(s_, w_.attention_out));
    m.take(kPassing, packed_);  // the gradient of the packed rows
    core_backward(m);
    m.give(kPassing, result_), m.give(kKept, packed_);
    m.give(kKept, result_), m.give(kKept, saved());
    m.moment(kBuffer, staged_product(s_, 2 * w_.attention_out));  // the products of keys and values
    if (first_) m.take(kPassing, s_.of_encoder().residual());
    m.moment(kBuffer, staged_product(s_, w_.attention_out));  // the product of queries
    norm_backward(s_, m);
  }

  const StepSizes& s_;
  const UnitWeights& w_;
  bool first_;
  double result_, half_, packed_, scores_, lse_;  // bytes; half_: of the keys, or the values
};

}  // namespace

UnitMemory cross_attention_memory(const StepSizes& s, const UnitWeights& w, bool first) {
  return CrossAttention(s, w, first).memory();
}

UnitMemory encoder_end_memory(const StepSizes& s, const UnitWeights& w) {
  const StepSizes encoder = s.of_encoder();
  UnitMemory out;
  Moments m;
  m.take(kKept, encoder.residual());
  norm(encoder, m);
  out.saved = m.now();
  // The embedding's result, and the decoder's relative positions.
  m.moment(kKept, s.residual() + s.element * s.score_bias());
  out.forward = m.top();
  Moments back;
  back.take(kKept, out.saved.total());
  back.moment({{kPassing, s.residual() + bias_backward(s)}});
  back.moment({{kPassing, s.residual()}, {kBuffer, staged(s, w.positions)}});
  back.give(kKept, encoder.residual());
  norm_backward(encoder, back);
  out.backward = back.top();
  return out;
}

}  // namespace sweep::shape
