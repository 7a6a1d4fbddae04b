// The attention half of a block: model/attention.cpp, attention_core.cpp, ring_attention.cpp,
// head_exchange.cpp, latent_attention.cpp.
#include <algorithm>
#include <vector>

#include "bench_kernels/shape/unit_memory.h"

namespace sweep::shape {

using namespace moments;

namespace {

class Attention {
 public:
  Attention(const StepSizes& s, const UnitWeights& w, bool rope) : s_(s), w_(w), rope_(rope) {
    const double here = s.dims.heads / (s.group.exchange ? s.group.cp : 1);  // heads of the kernel's rows
    scores_ = here * s.rows.seq * s.rows.seq;
    sequence_ = here * s.rows.seq * s.dims.head_dim;
    shares_ = s.dims.heads != s.dims.kv_heads;
  }

  UnitMemory memory() const {
    if (s_.latent.used) return latent_memory();
    UnitMemory out = of_passes([this](Moments& m) { forward(m); }, [this](Moments& m) { backward(m); });
    if (!s_.weights.later) return out;
    out.later[kKept] = block(s_.residual()) + block(qkv()) + block(result()) +
                       block(s_.group.rows_split ? s_.gathered() : s_.residual());
    out.weights[kBuffer] =
        block(gathered_rows(s_)) + block(staged_product(s_, std::max(w_.query_key_value, w_.attention_out)));
    return out;
  }

 private:
  double qkv() const { return s_.of_rows(s_.dims.query + 2 * s_.dims.key_value); }
  double result() const { return s_.of_rows(s_.dims.query); }
  double lse() const { return s_.sums(s_.rows.whole * s_.dims.heads); }
  // One set of keys and values, as the ring passes it on.
  double keys_values() const { return s_.of_rows(2 * s_.dims.key_value); }
  // Columns that this rank's own weights give: fewer than qkv() if ranks share a key-value head.
  double columns() const { return s_.dims.query + 2 * s_.dims.key_value / s_.group.kv_sharers; }

  void forward(Moments& m) const {
    m.take(kKept, s_.residual());
    norm(s_, m);
    if (s_.kernels.norm_starts) m.take(kKept, s_.residual());
    const double own = s_.of_rows(columns());
    m.take(kKept, own);
    m.take(kKept, s_.of_rows(s_.low.query_key_value));
    m.moment({{kBuffer, dequantized(s_, w_.query_key_value)},
              {kBuffer, gathered_rows(s_)},
              {kPassing, factors(s_, s_.rows.whole * s_.dims.hidden, w_.query_key_value)}});
    if (s_.group.kv_sharers > 1) {
      m.moment({{kKept, qkv()}, {kBuffer, keys_values()}});
      m.give(kKept, own), m.take(kKept, qkv());
    }
    norm_heads(m);
    rotate(m);
    core(m);
    m.take(kKept, s_.of_rows(s_.low.attention_out));
    m.moment({{kKept, s_.kernels.norm_starts ? 0 : s_.residual()},
              {kBuffer, dequantized(s_, w_.attention_out)},
              {kBuffer, scattered_rows(s_)},
              {kPassing, factors(s_, s_.rows.whole * s_.dims.query, w_.attention_out)}});
    if (s_.kernels.norm_starts || s_.kernels.autocast) m.give(kKept, s_.residual());
    post_norm(s_, m);
    if (s_.block.selective) give_result(m);
  }

  void backward(Moments& m) const {
    m.take(kPassing, s_.residual());  // the gradient that comes in
    if (s_.block.selective) core(m);
    m.take(kPassing, result());  // its gradient
    post_norm_backward(s_, m);
    m.moment({{kBuffer, gathered_rows(s_)},
              {kPassing, s_.of_rows(s_.low.attention_out)},
              {kBuffer, dequantized(s_, w_.attention_out)}});
    m.moment(
        {{kBuffer, gathered_rows(s_)},
         {kPassing, factors(s_, s_.rows.whole * s_.dims.hidden, s_.rows.whole * s_.dims.query)},
         {kPassing, s_.of_rows(s_.low.attention_out)},
         {kBuffer, s_.weights.later ? 0 : staged_product(s_, w_.attention_out, w_.attention_out_adapters)}});
    m.give(kKept, s_.of_rows(s_.low.attention_out));
    if (s_.weights.later) m.take(kBuffer, gathered_rows(s_));
    end_post_norm_backward(s_, m);
    core_backward(m);
    rotate(m);
    norm_heads_backward(m);
    if (s_.group.kv_sharers > 1) {
      m.take(kPassing, s_.of_rows(columns()));
      m.moment(kBuffer, keys_values() * (1 + 1 / s_.group.kv_sharers));
      m.give(kPassing, qkv());
    }
    m.take(kPassing, s_.of_rows(s_.low.query_key_value));
    if (!s_.weights.later)
      m.moment({{kBuffer, regathered_rows(s_, s_.low.query_key_value)},
                {kPassing, factors(s_, s_.rows.whole * columns(), s_.rows.whole * s_.dims.hidden)},
                {kBuffer, staged_product(s_, w_.query_key_value, w_.query_key_value_adapters)}});
    if (s_.weights.later) m.take(kPassing, s_.residual());
    m.moment({{kBuffer, dequantized(s_, w_.query_key_value)},
              {kBuffer, scattered_rows(s_)},
              {kPassing, factors(s_, s_.rows.whole * columns(), w_.query_key_value)}});
    m.give(kPassing, s_.of_rows(s_.low.query_key_value));
    norm_backward(s_, m);
  }

  // Latent attention: heads of keys and values are made from latents, and values are as wide as keys in the core.
  std::vector<double> latent_norms() const {
    if (s_.latent.query == 0) return {s_.latent.key_value};
    return {s_.latent.key_value, s_.latent.query};
  }
  double all_rows() const { return s_.group.rows_split ? s_.gathered() : s_.residual(); }
  double staged_now(double weight, double adapters) const {
    return s_.weights.later ? 0 : staged_product(s_, weight, adapters);
  }
  // A latent norm's gradient: of a frozen one nobody reads it.
  double of_norm(double columns) const {
    return s_.weights.frozen ? s_.element * columns : staged_now(columns, 0);
  }
  UnitMemory latent_memory() const {
    UnitMemory out =
        of_passes([this](Moments& m) { latent_forward(m); }, [this](Moments& m) { latent_backward(m); });
    if (!s_.weights.later) return out;
    // h and the gradient that came in; what each product read and the gradient of what it gave.
    out.later[kKept] = 2 * block(all_rows());
    for (const double columns : {s_.latent.values, s_.latent.expanded, s_.dims.query, s_.latent.columns()})
      out.later[kKept] += block(s_.of_rows(columns));
    for (const double columns : latent_norms()) out.later[kKept] += block(s_.of_rows(columns));
    out.weights[kBuffer] =
        block(staged_product(s_, std::max({w_.attention_out, w_.key_value_up, w_.query_up, w_.latents})));
    return out;
  }
  void latent_forward(Moments& m) const {
    m.take(kKept, s_.residual());
    norm(s_, m);
    if (s_.kernels.norm_starts) m.take(kKept, s_.residual());
    if (s_.group.rows_split) m.take(kKept, s_.gathered()), m.give(kKept, s_.residual());
    m.take(kPassing, s_.of_rows(s_.latent.columns()));
    m.take(kKept, s_.of_rows(s_.low.latents));
    for (const double columns : latent_norms()) {
      m.take(kKept, s_.of_rows(columns)), m.take(kKept, s_.of_rows(columns)),
          m.take(kKept, s_.sums(s_.rows.whole));
      m.moment(kPassing, s_.kernels.plain_norm ? (s_.wide(1) + 1) * s_.sums(s_.rows.whole * columns) : 0);
    }
    m.take(kPassing, s_.of_rows(s_.dims.query)), m.take(kPassing, s_.of_rows(s_.latent.expanded));
    m.take(kKept, s_.of_rows(s_.low.up)), m.take(kKept, s_.of_rows(s_.low.up));
    m.take(kKept, qkv());
    m.give(kPassing, s_.of_rows(s_.latent.columns()));
    m.give(kPassing, s_.of_rows(s_.dims.query)), m.give(kPassing, s_.of_rows(s_.latent.expanded));
    rotate(m);
    core(m);
    m.take(kKept, s_.of_rows(s_.latent.values));
    m.take(kKept, s_.of_rows(s_.low.attention_out));
    m.moment({{kKept, s_.kernels.norm_starts ? 0 : s_.residual()}, {kBuffer, scattered_rows(s_)}});
    if (s_.kernels.norm_starts) m.give(kKept, s_.residual());
    if (s_.block.selective) give_result(m), m.give(kKept, s_.of_rows(s_.latent.values));
  }

  void latent_backward(Moments& m) const {
    m.take(kPassing, s_.residual());  // the gradient that comes in
    if (s_.block.selective) core(m), m.take(kKept, s_.of_rows(s_.latent.values));
    m.take(kPassing, s_.of_rows(s_.latent.values));  // gradient of the heads' values
    m.moment({{kBuffer, gathered_rows(s_)},
              {kPassing, s_.of_rows(s_.low.attention_out)},
              {kBuffer, staged_now(w_.attention_out, w_.attention_out_adapters)}});
    m.give(kKept, s_.of_rows(s_.low.attention_out));
    if (s_.weights.later) m.take(kBuffer, gathered_rows(s_));
    if (!s_.weights.later) m.give(kKept, s_.of_rows(s_.latent.values));
    m.take(kPassing, result());
    m.give(kPassing, s_.of_rows(s_.latent.values));
    core_backward(m);
    if (s_.weights.later) m.give(kKept, result());
    rotate(m);
    latents_backward(m);
    norm_backward(s_, m);
  }

  // Goes from the gradient of the packed heads to the gradient of the rows.
  void latents_backward(Moments& m) const {
    m.take(kPassing, s_.of_rows(s_.latent.columns()));
    m.take(kPassing, s_.of_rows(s_.dims.query)), m.take(kPassing, s_.of_rows(s_.latent.expanded));
    m.give(kPassing, qkv());
    m.take(kPassing, s_.of_rows(s_.low.up));
    m.moment(kBuffer, staged_now(w_.key_value_up, w_.key_value_up_adapters));
    m.take(kPassing, s_.of_rows(s_.latent.key_value));
    m.give(kPassing, s_.of_rows(s_.low.up)), m.give(kKept, s_.of_rows(s_.low.up));
    if (!s_.weights.later) m.give(kPassing, s_.of_rows(s_.latent.expanded));
    const bool of_latents = s_.latent.query > 0;
    m.take(kPassing, s_.of_rows(s_.low.up));
    m.moment(kBuffer, staged_now(w_.query_up, w_.query_up_adapters));
    if (of_latents) {
      m.take(kPassing, s_.of_rows(s_.latent.query));
      m.give(kPassing, s_.of_rows(s_.low.up));
      if (!s_.weights.later) m.give(kPassing, s_.of_rows(s_.dims.query));
    }
    m.give(kKept, s_.of_rows(s_.low.up));
    for (const double columns : latent_norms())
      m.moment({{kPassing, norm_gradients(s_, s_.rows.whole, columns)}, {kBuffer, of_norm(columns)}});
    for (const double columns : latent_norms()) m.give(kPassing, s_.of_rows(columns));
    m.take(kPassing, s_.of_rows(s_.low.latents));
    m.moment(kBuffer, staged_now(w_.latents, w_.latents_adapters));
    m.give(kKept, s_.of_rows(s_.low.latents));
    if (s_.weights.later && !(of_latents && s_.group.rows_split)) m.take(kPassing, all_rows());  // not over h
    if (s_.group.tp > 1 && !of_latents)
      m.take(kPassing, s_.residual()), m.moment(kBuffer, scattered_rows(s_));
    if (s_.group.rows_split && of_latents) m.take(kPassing, s_.residual());
    m.give(kPassing, s_.of_rows(s_.low.latents));
    if (of_latents) return;
    m.give(kPassing, s_.of_rows(s_.low.up));
    if (!s_.weights.later) m.give(kPassing, s_.of_rows(s_.dims.query));
  }

  struct Heads {
    double count, columns;
  };
  // The queries' and the keys', where they pass norms.
  std::vector<Heads> normed() const {
    if (!s_.block.qk_norm) return {};
    return {{s_.dims.heads, s_.dims.query}, {s_.dims.kv_heads, s_.dims.key_value}};
  }
  void norm_heads(Moments& m) const {
    for (const Heads& h : normed()) {
      const double elements = s_.rows.whole * h.columns;
      m.take(kKept, s_.element * elements), m.take(kKept, s_.sums(s_.rows.whole * h.count));
      m.moment({{kPassing, s_.element * elements},
                {kPassing, s_.kernels.plain_norm ? (s_.wide(1) + 1) * s_.sums(elements) : 0}});
    }
  }
  void norm_heads_backward(Moments& m) const {
    for (const Heads& h : normed())
      m.moment({{kPassing, s_.of_rows(h.columns)},
                {kPassing, norm_gradients(s_, s_.rows.whole * h.count, s_.dims.head_dim)},
                {kPassing, s_.weights.frozen ? s_.element * s_.dims.head_dim : 0}});
    for (const Heads& h : normed())
      m.give(kKept, s_.of_rows(h.columns)), m.give(kKept, s_.sums(s_.rows.whole * h.count));
  }

  // Rotary positions as a GPU computes them: halves of q and k in fp32.
  void rotate(Moments& m) const {
    if (s_.kernels.plain_rope && rope_)
      m.moment(kPassing, (3 + s_.wide(2)) * s_.sums(s_.rows.whole * (s_.dims.query + s_.dims.key_value) / 2));
  }

  // The heads of all sequences, one after another.
  double batched() const { return s_.rows.batch * s_.element * sequence_; }
  // The library's kernels make gradients of k and v for each query head, but cuDNN's; `sdpa` reads a k and a v
  // for each, too.
  double library_gradients() const {
    if (s_.kernels.attention == AttentionKind::kCudnn) return qkv();
    return (s_.kernels.attention == AttentionKind::kSdpa && shares_ ? 5 : 3) * result();
  }
  // Rows of the sums that its backward keeps: each document has room for another block of 128.
  double padded_rows() const { return s_.rows.whole + 128 * s_.rows.documents; }
  // A number of each score of the micro-batch.
  double of_scores(double width) const { return width * s_.rows.batch * scores_; }
  double kept_scores() const { return of_scores(s_.element) + (s_.kernels.autocast ? of_scores(4) : 0); }
  double spread() const { return shares_ ? s_.element * sequence_ : 0; }

  // qkv is there; the result and what the backward reads of the scores are kept.
  void core(Moments& m) const {
    if (s_.group.ring) return ring(m);
    if (s_.group.exchange) m.moment(kBuffer, 2 * qkv());  // the exchanged one replaces it
    m.take(kKept, result());
    if (s_.kernels.flash) {
      m.take(kKept, lse());
      if (s_.kernels.attention == AttentionKind::kSdpa && shares_) m.moment(kPassing, 2 * result());
      if (s_.block.sinks && s_.kernels.gpu && s_.kernels.plain_rope) m.moment(kPassing, 2 * lse());
    } else if (s_.kernels.autocast) {
      m.moment({{kPassing, 2 * batched()}, {kPassing, of_scores(s_.element)}, {kKept, of_scores(4)}});
      m.take(kKept, of_scores(4)), m.take(kKept, of_scores(s_.element));
      m.moment(kPassing, 2 * batched());
    } else {
      m.take(kKept, of_scores(s_.element));
      m.moment(kPassing, s_.kernels.gpu
                             ? std::max(s_.block.causal ? 3 * s_.rows.seq * s_.rows.seq : 0, 2 * batched())
                             : spread());
    }
    if (!s_.group.exchange) return;
    m.take(kKept, result());
    m.moment(kBuffer, result());
  }
  void give_result(Moments& m) const {
    m.give(kKept, result());
    m.give(kKept, s_.kernels.flash ? lse() : kept_scores());
    if (s_.group.exchange) m.give(kKept, result());
  }

  // The sum over the blocks is in fp32; of later blocks this rank's late half of the queries.
  void ring(Moments& m) const {
    const double q = s_.rows.whole * s_.dims.query, half = q / 2;
    m.take(kKept, lse());
    m.moment({{kPassing, s_.sums(q)}, {kPassing, s_.wide(1) * s_.element * q}, {kBuffer, 2 * keys_values()}});
    m.moment({{kPassing, s_.sums(q)},
              {kPassing, s_.element * half + lse() / 2},
              {kPassing, s_.kernels.gpu ? s_.sums(half) : 0},
              {kBuffer, (s_.group.cp > 2 ? 2 : 1) * keys_values()}});
    m.take(kKept, result());
    m.moment({{kPassing, s_.wide(1) * s_.sums(q)}, {kBuffer, keys_values()}});
  }

  void core_backward(Moments& m) const {
    if (s_.group.ring) return ring_backward(m);
    if (s_.group.exchange) {
      m.give(kKept, result());
      m.moment(kBuffer, 2 * result());
    }
    m.take(kPassing, qkv());  // its gradient
    if (s_.kernels.flash && s_.kernels.gpu)
      m.moment({{kPassing, library_gradients()},
                {kPassing, s_.sums(padded_rows() * s_.dims.heads * (s_.dims.head_dim + 1))}});
    if (!s_.kernels.flash && s_.kernels.autocast)
      m.moment({{kPassing, 2 * batched() + of_scores(s_.element)},
                {kPassing, std::max(batched(), of_scores(4) * (s_.kernels.gpu ? 2 : 1))}});
    else if (!s_.kernels.flash && s_.kernels.gpu)
      m.moment(
          {{kPassing, s_.rows.batch * s_.element * scores_}, {kPassing, 3 * batched()}, {kPassing, lse()}});
    else if (!s_.kernels.flash)
      m.moment({{kPassing, s_.element * scores_}, {kPassing, s_.element * sequence_}, {kPassing, spread()}});
    if (s_.group.exchange) m.moment(kBuffer, 2 * qkv());
    end_core_backward(m);
  }

  void end_core_backward(Moments& m) const {
    m.give(kPassing, result());
    m.give(kKept, qkv());
    if (!s_.weights.later) m.give(kKept, result());
    m.give(kKept, s_.kernels.flash ? lse() : kept_scores());
  }

  void ring_backward(Moments& m) const {
    const double rows = s_.rows.whole * s_.dims.heads * (s_.dims.head_dim + 1);
    m.take(kPassing, qkv());
    m.moment({{kBuffer, 2 * keys_values()},
              {kPassing, s_.kernels.gpu ? result() + keys_values() + s_.sums(rows) : 0}});
    const double travelling = (s_.group.cp > 2 ? 4 : 2) * keys_values();
    m.moment({{kBuffer, travelling},
              {kPassing, s_.kernels.gpu ? result() / 2 + keys_values() + s_.sums(rows / 2) : 0}});
    end_core_backward(m);
  }

  const StepSizes& s_;
  const UnitWeights& w_;
  bool rope_, shares_;
  double scores_, sequence_;  // elements: of one sequence's scores, of one sequence's q
};

}  // namespace

UnitMemory attention_memory(const StepSizes& s, const UnitWeights& w, bool rope) {
  return Attention(s, w, rope).memory();
}

}  // namespace sweep::shape
