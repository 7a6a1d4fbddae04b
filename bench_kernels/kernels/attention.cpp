#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/dispatch.h"

namespace sweep::kernels {

namespace {

struct Heads {
  at::Tensor q, k, v;  // [B, S, heads or kv_heads, head_dim], views of the rows
};

Heads split(const at::Tensor& rows, const AttentionShape& s) {
  const at::Tensor all = rows.view({s.batch, s.seq, s.heads + 2 * s.kv_heads, s.head_dim});
  return {all.narrow(2, 0, s.heads), all.narrow(2, s.heads, s.kv_heads),
          all.narrow(2, s.heads + s.kv_heads, s.kv_heads)};
}

double scale_of(const AttentionShape& s) {
  return 1.0 / std::sqrt(static_cast<double>(s.head_dim));
}

bool windowed(const AttentionShape& s) {
  return s.window && *s.window < s.seq;
}

// Each key-value head once per query head that reads it (dimension `dim` holds them); no copy when they are
// as many.
at::Tensor spread(const at::Tensor& kv, const AttentionShape& s, std::int64_t dim) {
  if (s.heads == s.kv_heads) return kv;
  auto sizes = kv.sizes().vec();
  sizes[dim] = s.heads;
  auto expanded = kv.sizes().vec();
  expanded.insert(expanded.begin() + dim + 1, s.heads / s.kv_heads);
  return kv.unsqueeze(dim + 1).expand(expanded).reshape(sizes);
}

// The reverse for gradients: sums the query heads of each key-value head into `to`.
void gather(const at::Tensor& spread_grad, const at::Tensor& to, const AttentionShape& s, std::int64_t dim) {
  at::Tensor target = to;
  if (s.heads == s.kv_heads) {
    if (!spread_grad.is_same(to)) target.copy_(spread_grad);
    return;
  }
  target.copy_(at::sum(spread_grad.unflatten(dim, {s.kv_heads, s.heads / s.kv_heads}), {dim + 1}));
}

// ---- flash on CPU: the library's operator, whose work space is scratch; what it returns is moved to device
// blocks ----------

// [B, heads, S, D] of rows or of heads, in the type the kernel is fast in (linear.cpp: no bf16 products on
// CPU).
at::Tensor heads_first(const at::Tensor& t, const AttentionShape& s) {
  const at::Tensor split_heads = t.dim() == 4 ? t : t.view({s.batch, s.seq, s.heads, s.head_dim});
  return split_heads.transpose(1, 2).to(accumulate_type(t.scalar_type()));
}

std::optional<at::Tensor> given(const at::Tensor& mask) {
  if (!mask.defined()) return std::nullopt;
  return mask.to(accumulate_type(mask.scalar_type()));
}

void cpu_flash(const at::Tensor& qkv, const AttentionShape& s, const AttentionState& state) {
  memory::ScratchScope scratch;
  const Heads h = split(qkv, s);
  const auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
      heads_first(h.q, s), heads_first(spread(h.k, s, 2), s), heads_first(spread(h.v, s, 2), s), 0.0,
      !state.mask.defined(), given(state.mask), scale_of(s));
  state.out.view({s.batch, s.seq, s.heads, s.head_dim}).copy_(out.transpose(1, 2));
  state.saved.copy_(lse.transpose(1, 2));
}

void cpu_flash_backward(const at::Tensor& dout, const at::Tensor& qkv, const AttentionShape& s,
                        const AttentionState& state, const at::Tensor& dqkv) {
  memory::ScratchScope scratch;
  const Heads h = split(qkv, s);
  const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      heads_first(dout, s), heads_first(h.q, s), heads_first(spread(h.k, s, 2), s),
      heads_first(spread(h.v, s, 2), s), heads_first(state.out, s), state.saved.transpose(1, 2), 0.0,
      !state.mask.defined(), given(state.mask), scale_of(s));
  const Heads d = split(dqkv, s);
  d.q.copy_(dq.transpose(1, 2));
  gather(dk.transpose(1, 2), d.k, s, 2);
  gather(dv.transpose(1, 2), d.v, s, 2);
}

// ---- flash on CUDA (and what it would allocate, on meta)
// -------------------------------------------------------------------

at::ScalarType statistics_type(const at::Tensor& t) {
  return accumulate_type(t.scalar_type());
}

AttentionState cuda_flash(const at::Tensor& qkv, const AttentionShape& s) {
  if (qkv.is_meta()) {
    return {at::empty({s.batch * s.seq, s.heads * s.head_dim}, qkv.options()),
            at::empty({s.batch, s.heads, s.seq}, qkv.options().dtype(at::kFloat)),
            at::empty({2}, qkv.options().dtype(at::kLong))};
  }
  const Heads h = split(qkv, s);
  const std::optional<std::int64_t> left = windowed(s) ? std::optional(*s.window - 1) : std::nullopt;
  auto [out, lse, rng, unused, debug] =
      at::_flash_attention_forward(h.q, h.k, h.v, std::nullopt, std::nullopt, s.seq, s.seq, 0.0, true, false,
                                   scale_of(s), left, left ? std::optional<std::int64_t>(0) : std::nullopt);
  return {out.reshape({s.batch * s.seq, s.heads * s.head_dim}), lse, rng};
}

// dq, dk, dv by query heads, the fp32 accumulator of dq and the row sums, as flash-attention 2 allocates them.
void meta_flash_backward(const at::Tensor& qkv, const AttentionShape& s) {
  const at::Tensor d = at::empty({3, s.batch, s.seq, s.heads, s.head_dim}, qkv.options());
  const at::Tensor sums =
      at::empty({s.batch, s.heads, s.seq, s.head_dim + 1}, qkv.options().dtype(at::kFloat));
}

// Turns the gradients of q and k in rows back.
void turn_back(const at::Tensor& rows, const AttentionShape& s, const Angles& angles) {
  if (angles.cos.defined()) rope(rows, s.heads + s.kv_heads, s.head_dim, angles.cos, angles.sin, true);
}

// The gradients of q, k and v become rows of all three, turned back.
void join(const at::Tensor& dq, const at::Tensor& dk, const at::Tensor& dv, const AttentionShape& s,
          const Angles& angles, const at::Tensor& dqkv) {
  if (way(dqkv, Fused::kRope) == FusedWay::kDevice && device::join_heads(dq, dk, dv, angles, dqkv)) return;
  Heads d = split(dqkv, s);
  d.q.copy_(dq);
  d.k.copy_(dk);
  d.v.copy_(dv);
  turn_back(dqkv, s, angles);
}

void cuda_flash_backward(const at::Tensor& dout, const at::Tensor& qkv, const AttentionShape& s,
                         const AttentionState& state, const at::Tensor& dqkv, const Angles& angles) {
  const auto sizes = std::vector<std::int64_t>{s.batch, s.seq, s.heads, s.head_dim};
  if (qkv.is_meta()) {
    meta_flash_backward(qkv, s);
    return turn_back(dqkv, s, angles);
  }
  const Heads h = split(qkv, s);
  const std::optional<std::int64_t> left = windowed(s) ? std::optional(*s.window - 1) : std::nullopt;
  const auto [dq, dk, dv] = at::_flash_attention_backward(
      dout.view(sizes), h.q, h.k, h.v, state.out.view(sizes), state.saved, at::Tensor(), at::Tensor(), s.seq,
      s.seq, 0.0, true, state.mask, at::Tensor(), scale_of(s), left,
      left ? std::optional<std::int64_t>(0) : std::nullopt);
  join(dq, dk, dv, s, angles, dqkv);
}

// ---- math: the score matrix in memory
// --------------------------------------------------------------------------------------

// out[H, m, n] = a @ b by batch; casts as linear.cpp does.
void batch_product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out) {
  if (way(out) == Way::kNothing) return;
  at::Tensor result = out;
  if (!out.is_cpu()) {
    at::bmm_out(result, a, b);
    return;
  }
  memory::ScratchScope scratch;
  if (at::isReducedFloatingType(out.scalar_type()))
    result.copy_(at::bmm(a.to(at::kFloat), b.to(at::kFloat)));
  else
    at::bmm_out(result, a, b);
}

void causal_softmax(const at::Tensor& scores, const AttentionShape& s) {
  const std::int64_t window = windowed(s) ? *s.window : s.seq;
  if (way(scores) == Way::kNothing) return;
  if (way(scores) == Way::kPlain) return plain::causal_softmax(scores, window, scale_of(s));
  by_type(scores, [&]<class T>() {
    using A = typename RowKernels<T>::A;
    over_rows(scores.numel() / s.seq, s.seq, [&](std::int64_t begin, std::int64_t end) {
      row_kernels<T>().causal_softmax(data<T>(scores), begin, end, s.seq, window,
                                      static_cast<A>(scale_of(s)));
    });
  });
}

void softmax_backward(const at::Tensor& probs, const at::Tensor& grad, const AttentionShape& s) {
  if (way(probs) == Way::kNothing) return;
  if (way(probs) == Way::kPlain) return plain::softmax_backward(probs, grad, scale_of(s));
  by_type(probs, [&]<class T>() {
    using A = typename RowKernels<T>::A;
    over_rows(probs.numel() / s.seq, s.seq, [&](std::int64_t begin, std::int64_t end) {
      row_kernels<T>().softmax_backward(data<T>(probs), data<T>(grad), begin, end, s.seq,
                                        static_cast<A>(scale_of(s)));
    });
  });
}

// [S, heads, D] of sequence b as [heads, S, D].
at::Tensor one(const at::Tensor& t, std::int64_t b) {
  return t.select(0, b).transpose(0, 1);
}

void math(const at::Tensor& qkv, const AttentionShape& s, const AttentionState& state) {
  const Heads h = split(qkv, s);
  const at::Tensor out = state.out.view({s.batch, s.seq, s.heads, s.head_dim});
  for (std::int64_t b = 0; b < s.batch; ++b) {
    batch_product(one(h.q, b), spread(one(h.k, b), s, 0).transpose(1, 2), state.saved.select(0, b));
  }
  causal_softmax(state.saved, s);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    batch_product(state.saved.select(0, b), spread(one(h.v, b), s, 0), one(out, b));
  }
}

void math_backward(const at::Tensor& dout, const at::Tensor& qkv, const AttentionShape& s,
                   const AttentionState& state, const at::Tensor& dqkv) {
  const Heads h = split(qkv, s), d = split(dqkv, s);
  const at::Tensor grad = dout.view({s.batch, s.seq, s.heads, s.head_dim});
  const at::Tensor dp = at::empty({s.heads, s.seq, s.seq}, qkv.options());
  const at::Tensor dkv = at::empty({s.heads, s.seq, s.head_dim}, qkv.options());
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const at::Tensor p = state.saved.select(0, b), g = one(grad, b);
    batch_product(p.transpose(1, 2), g, dkv);
    gather(dkv, one(d.v, b), s, 0);
    batch_product(g, spread(one(h.v, b), s, 0).transpose(1, 2), dp);
    softmax_backward(p, dp, s);
    batch_product(dp, spread(one(h.k, b), s, 0), one(d.q, b));
    batch_product(dp.transpose(1, 2), one(h.q, b), dkv);
    gather(dkv, one(d.k, b), s, 0);
  }
}

}  // namespace

at::Tensor window_mask(const AttentionShape& s, const at::TensorOptions& options) {
  const at::Tensor probe = at::empty({0}, options);
  if (!s.flash || !windowed(s) || probe.is_cuda() || (probe.is_meta() && path() == Path::kPlain)) return {};
  at::Tensor mask = at::empty({s.seq, s.seq}, options);
  if (mask.is_meta()) return mask;
  memory::ScratchScope scratch;
  const at::Tensor at_row = at::arange(s.seq).unsqueeze(1), at_column = at::arange(s.seq).unsqueeze(0);
  const at::Tensor hidden = at_column.gt(at_row).logical_or(at_column.le(at_row.sub(*s.window)));
  mask.zero_().masked_fill_(hidden, -std::numeric_limits<double>::infinity());
  return mask;
}

AttentionState attention(const at::Tensor& qkv, const AttentionShape& s, const at::Tensor& mask) {
  if (s.flash && (qkv.is_cuda() || (qkv.is_meta() && path() == Path::kPlain))) return cuda_flash(qkv, s);
  const auto lse_options = qkv.options().dtype(statistics_type(qkv));
  AttentionState state{at::empty({s.batch * s.seq, s.heads * s.head_dim}, qkv.options()),
                       s.flash ? at::empty({s.batch, s.seq, s.heads}, lse_options)
                               : at::empty({s.batch, s.heads, s.seq, s.seq}, qkv.options()),
                       mask};
  if (!s.flash)
    math(qkv, s, state);
  else if (qkv.is_cpu())
    cpu_flash(qkv, s, state);
  return state;
}

void attention_backward(const at::Tensor& dout, const at::Tensor& qkv, const AttentionShape& s,
                        const AttentionState& state, const at::Tensor& dqkv, const Angles& angles) {
  if (s.flash && (qkv.is_cuda() || (qkv.is_meta() && path() == Path::kPlain)))
    return cuda_flash_backward(dout, qkv, s, state, dqkv, angles);
  if (!s.flash)
    math_backward(dout, qkv, s, state, dqkv);
  else if (qkv.is_cpu())
    cpu_flash_backward(dout, qkv, s, state, dqkv);
  turn_back(dqkv, s, angles);
}

}  // namespace sweep::kernels
