// RowKernels: the fused loops of the step on CPU, one table per instruction set, chosen at run time. Each
// works on the rows [begin, end) of row-major arrays, allocates nothing, starts no thread and knows no tensor
// library.
//
// T is the stored type (float, Bf16, Fp16, double); sums and tables are in A (float, or double for double).
#pragma once
#include <cstdint>

namespace sweep::kernels {

struct Bf16 {
  std::uint16_t bits;
};
struct Fp16 {
  std::uint16_t bits;
};

template <class T>
struct Accumulate {
  using Type = float;
};
template <>
struct Accumulate<double> {
  using Type = double;
};

// The tokens of some rows and what of the vocabulary is held: entries first .. first + held of the table. The
// position of row r is places[r % seq], or r % seq without places.
struct TokenRows {
  const std::int64_t *ids = nullptr, *places = nullptr;
  std::int64_t first = 0, held = 0, seq = 1;
};

// Rows of n logits, of the vocabulary's entries first .. first + n; a row may be followed by padding.
template <class T>
struct LogitRows {
  T* at = nullptr;
  std::int64_t first = 0, n = 0, stride = 0;
};

template <class T>
struct RowKernels {
  using A = typename Accumulate<T>::Type;
  using Index = std::int64_t;

  // y = x * rstd * (w + plus), rstd = 1 / sqrt(mean(x^2) + eps).
  void (*rms_norm)(const T* x, const T* w, T* y, A* rstd, Index begin, Index end, Index n, double eps,
                   double plus);
  // dx = residual + d/dx of the above (residual may be null); dw[n] grows by this range's share. dx may be
  // dy.
  void (*rms_norm_backward)(const T* dy, const T* x, const T* w, const A* rstd, const T* residual, T* dx,
                            A* dw, Index begin, Index end, Index n, double plus);
  // y = (x - mean) * rstd * w + b.
  void (*layer_norm)(const T* x, const T* w, const T* b, T* y, A* mean, A* rstd, Index begin, Index end,
                     Index n, double eps);
  void (*layer_norm_backward)(const T* dy, const T* x, const T* w, const A* mean, const A* rstd,
                              const T* residual, T* dx, A* dw, A* db, Index begin, Index end, Index n);
  // Rotates `heads` vectors of head_dim at the start of each row in place ("rotate half"); position = row %
  // seq. cos and sin are [seq, head_dim / 2]; sign -1 turns back (the backward).
  void (*rope)(T* rows, Index stride, Index begin, Index end, Index seq, Index heads, Index head_dim,
               const A* cos, const A* sin, A sign);
  struct ActivationLoops {
    // `in` of a gated activation is [rows, 2n], gate first.
    void (*forward)(const T* in, T* out, Index begin, Index end, Index n);
    // in becomes its gradient; grad (of out) becomes out again, so that the forward need not keep it.
    void (*backward)(T* in, T* grad, Index begin, Index end, Index n);
  };
  ActivationLoops activations[6];  // one for each Activation of ops.h, in its order
  // lse[row] = log sum exp(logits),
  // picked[row] (may be null) the logit of the label, 0 where it is not here; returns the sum of lse -
  // picked.
  double (*cross_entropy)(LogitRows<T> logits, const Index* labels, A* lse, A* picked, Index begin,
                          Index end);
  // logits become (exp(logits - lse) - onehot) * scale.
  void (*cross_entropy_backward)(LogitRows<T> logits, const Index* labels, const A* lse, A scale, Index begin,
                                 Index end);
  // Row r of each [seq, seq] score matrix: softmax of scale * scores over columns (r - window, r], zero
  // elsewhere.
  // places: of the tokens of one sequence, within their documents; null: as in the sequence.
  void (*causal_softmax)(T* scores, const Index* places, Index begin, Index end, Index seq, Index window,
                         A scale);
  // grad becomes probs * (grad - sum(grad * probs)) * scale.
  void (*softmax_backward)(const T* probs, T* grad, Index begin, Index end, Index n, A scale);
  // out[row] = table[token of the row] (zero where it is not held), plus positions[its place] when given.
  void (*embed)(const T* table, const T* positions, const TokenRows&, T* out, Index begin, Index end,
                Index n);
  // table_grad[token of the row] += grad[row] over all rows, columns [first, last) only.
  void (*embed_backward)(const T* grad, const TokenRows&, T* table_grad, Index rows, Index n, Index first,
                         Index last);
  // sums[n] += column sums of the rows.
  void (*column_sums)(const T* in, Index stride, A* sums, Index begin, Index end, Index n);
  // grad (+)= sums.
  void (*store_sums)(const A* sums, T* grad, Index n, bool add);
  // The sum of the squares of in[begin, end).
  double (*squares)(const T* in, Index begin, Index end);
  // out[i] uniform in [-bound, bound], a pure function of (key, first + i).
  void (*fill_uniform)(T* out, Index first, Index count, std::uint64_t key, A bound);
};

// The table for this machine's best instruction set; `widest` false gives the plain one (for tests).
template <class T>
const RowKernels<T>& row_kernels(bool widest = true);

// A stable 64-bit hash (splitmix64), for keys of fill_uniform and of the synthetic batch.
constexpr std::uint64_t mix64(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

}  // namespace sweep::kernels
