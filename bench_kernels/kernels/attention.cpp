#include <ATen/ATen.h>

#include <limits>

#include "bench_kernels/kernels/attention_heads.h"
#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/dispatch.h"

namespace sweep::kernels {

namespace {

// ---- flash on CPU: the library's operator, whose work space is scratch; what it returns is moved to device
// blocks ----------

// [B, heads, S, D] of rows or of heads, in the type the kernel is fast in (linear.cpp: no bf16 products on
// CPU).
at::Tensor heads_first(const at::Tensor& t, const AttentionShape& s) {
  const at::Tensor by_heads = t.dim() == 4 ? t : t.view({s.batch, s.seq, s.heads, s.head_dim});
  return by_heads.transpose(1, 2).to(accumulate_type(t.scalar_type()));
}

std::optional<at::Tensor> given(const at::Tensor& mask) {
  if (!mask.defined()) return std::nullopt;
  return mask.to(accumulate_type(mask.scalar_type()));
}

// f(the shape of a document, its first row): each document alone; without them all sequences at once.
template <class F>
void each_document(const AttentionShape& s, const F& f) {
  if (s.documents == nullptr) return f(s, 0);
  AttentionShape one = s;
  one.documents = nullptr, one.batch = 1;
  const auto& ends = s.documents->ends;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    one.seq = ends[i + 1] - ends[i];
    f(one, ends[i]);
  }
}

// The rows of documents. Cross-attention has no documents: it gets all rows.
at::Tensor document_rows(const at::Tensor& rows, const AttentionShape& s, std::int64_t first) {
  if (s.keys > 0) return rows;
  return rows.narrow(0, first, s.batch * s.seq);
}

// The part of the state that belongs to one document.
AttentionState document_state(const AttentionState& state, const AttentionShape& s, std::int64_t first) {
  return {document_rows(state.out, s, first),
          document_rows(state.saved.flatten(0, 1), s, first).view({s.batch, s.seq, s.heads}),
          state.mask.defined() ? state.mask.narrow(0, 0, s.seq).narrow(1, 0, s.seq) : state.mask};
}

void cpu_flash(const at::Tensor& qkv, const AttentionShape& s, const AttentionState& state) {
  memory::ScratchScope scratch;
  const Heads h = split_heads(qkv, s);
  const auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
      heads_first(h.q, s), heads_first(spread(h.k, s, 2), s), heads_first(spread(h.v, s, 2), s), 0.0,
      s.causal && !state.mask.defined(), given(state.mask), scale_of(s));
  state.out.view({s.batch, s.seq, s.heads, s.head_dim}).copy_(out.transpose(1, 2));
  state.saved.copy_(lse.transpose(1, 2));
}

void cpu_flash_backward(const at::Tensor& dout, const at::Tensor& qkv, const AttentionShape& s,
                        const AttentionState& state, const at::Tensor& dqkv) {
  memory::ScratchScope scratch;
  const Heads h = split_heads(qkv, s);
  const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      heads_first(dout, s), heads_first(h.q, s), heads_first(spread(h.k, s, 2), s),
      heads_first(spread(h.v, s, 2), s), heads_first(state.out, s), state.saved.transpose(1, 2), 0.0,
      s.causal && !state.mask.defined(), given(state.mask), scale_of(s));
  const Heads d = split_heads(dqkv, s);
  d.q.copy_(dq.transpose(1, 2));
  gather(dk.transpose(1, 2), d.k, s, 2);
  gather(dv.transpose(1, 2), d.v, s, 2);
}

at::ScalarType statistics_type(const at::Tensor& t) {
  return accumulate_type(t.scalar_type());
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

void softmax(const at::Tensor& scores, const AttentionShape& s) {
  if (way(scores) == Way::kNothing) return;
  if (!s.causal) {
    memory::ScratchScope scratch;  // none of a GPU's: it is done in place
    return plain::softmax(scores, scale_of(s));
  }
  const std::int64_t window = windowed(s) ? *s.window : s.seq;
  const at::Tensor places = s.documents ? s.documents->places : at::Tensor();
  if (way(scores) == Way::kPlain) return plain::causal_softmax(scores, window, scale_of(s), places);
  by_type(scores, [&]<class T>() {
    using A = typename RowKernels<T>::A;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      const auto* of_sequence = places.defined() ? data<std::int64_t>(places) + b * s.seq : nullptr;
      over_rows(s.heads * s.seq, s.seq, [&](std::int64_t begin, std::int64_t end) {
        row_kernels<T>().causal_softmax(data<T>(scores) + b * s.heads * s.seq * s.seq, of_sequence, begin,
                                        end, s.seq, window, static_cast<A>(scale_of(s)));
      });
    }
  });
}

void softmax_backward(const at::Tensor& probs, const at::Tensor& grad, const AttentionShape& s) {
  if (way(probs) == Way::kNothing) return;
  by_type(probs, [&]<class T>() {
    using A = typename RowKernels<T>::A;
    const std::int64_t keys = s.key_count();
    over_rows(probs.numel() / keys, keys, [&](std::int64_t begin, std::int64_t end) {
      row_kernels<T>().softmax_backward(data<T>(probs), data<T>(grad), begin, end, keys,
                                        static_cast<A>(scale_of(s)));
    });
  });
}

// Scores of all sequences, [B, heads, S, keys], before the softmax.
void add_bias(const at::Tensor& scores, const AttentionShape& s) {
  if (s.bias.defined() && way(scores) != Way::kNothing) at::Tensor(scores).add_(s.bias);
}

// The gradient of one sequence's scores, [heads, S, keys], is one of the bias too.
void add_to_bias(const at::Tensor& dbias, const at::Tensor& dscores) {
  if (!dbias.defined() || way(dscores) == Way::kNothing) return;
  std::optional<memory::ScratchScope> scratch;  // a processor's, of another type
  if (dbias.is_cpu()) scratch.emplace();
  at::Tensor(dbias).add_(dscores);
}

// [S, heads, D] of sequence b as [heads, S, D].
at::Tensor one(const at::Tensor& t, std::int64_t b) {
  return t.select(0, b).transpose(0, 1);
}

// All sequences at once, as GPUs like it: [B * heads, S, D], each key-value head once per query head. A copy,
// where the heads of one sequence are not followed by those of the next.
at::Tensor batched(const at::Tensor& heads, const AttentionShape& s) {
  const at::Tensor first = heads.transpose(1, 2);
  const std::int64_t shared = s.heads / heads.size(2);
  return first.unsqueeze(2)
      .expand({s.batch, heads.size(2), shared, heads.size(1), s.head_dim})
      .reshape({s.batch * s.heads, heads.size(1), s.head_dim});
}

// The reverse, as [B, S, heads, D].
at::Tensor unbatched(const at::Tensor& values, const AttentionShape& s) {
  return values.view({s.batch, s.heads, values.size(1), s.head_dim}).transpose(1, 2);
}

// Under autocast: scores in 16 bits, softmax in fp32, and its result again in 16 bits for the product.
void eager_math(const at::Tensor& qkv, const AttentionShape& s, AttentionState& state) {
  const Heads h = split_heads(qkv, s);
  {
    const at::Tensor scores = at::empty({s.batch * s.heads, s.seq, s.seq}, qkv.options());
    batch_product(batched(h.q, s), batched(h.k, s).transpose(1, 2), scores);
    state.saved = scores.to(at::kFloat).view({s.batch, s.heads, s.seq, s.seq});
  }
  softmax(state.saved, s);
  state.narrow = state.saved.to(qkv.scalar_type()).view({s.batch * s.heads, s.seq, s.seq});
  const at::Tensor out = at::empty({s.batch * s.heads, s.seq, s.head_dim}, qkv.options());
  batch_product(state.narrow, batched(h.v, s), out);
  state.out.view({s.batch, s.seq, s.heads, s.head_dim}).copy_(unbatched(out, s));
}

void eager_math_backward(const at::Tensor& dout, const at::Tensor& qkv, const AttentionShape& s,
                         const AttentionState& state, const at::Tensor& dqkv) {
  const Heads h = split_heads(qkv, s), d = split_heads(dqkv, s);
  const at::Tensor grad = batched(dout.view({s.batch, s.seq, s.heads, s.head_dim}), s);
  const at::Tensor of_heads = at::empty_like(grad), scores = at::empty_like(state.narrow);
  batch_product(state.narrow.transpose(1, 2), grad, of_heads);
  gather(unbatched(of_heads, s), d.v, s, 2);
  batch_product(grad, batched(h.v, s).transpose(1, 2), scores);
  {
    const at::Tensor wide = scores.to(at::kFloat), probs = state.saved.view(scores.sizes());
    if (way(qkv) == Way::kPlain)
      plain::softmax_backward(probs, probs.mul(wide).sum({-1}, true), wide, scale_of(s));
    else
      softmax_backward(probs, wide, s);
    at::Tensor(scores).copy_(wide);
  }
  batch_product(scores, batched(h.k, s), of_heads);
  at::Tensor(d.q).copy_(unbatched(of_heads, s));
  batch_product(scores.transpose(1, 2), batched(h.q, s), of_heads);
  gather(unbatched(of_heads, s), d.k, s, 2);
}

void batched_math(const at::Tensor& qkv, const AttentionShape& s, const AttentionState& state) {
  const Heads h = split_heads(qkv, s);
  at::Tensor probs = state.saved.view({s.batch * s.heads, s.seq, s.key_count()});
  at::bmm_out(probs, batched(h.q, s), batched(h.k, s).transpose(1, 2));
  add_bias(state.saved, s);
  softmax(state.saved, s);
  state.out.view({s.batch, s.seq, s.heads, s.head_dim}).copy_(unbatched(at::bmm(probs, batched(h.v, s)), s));
}

void batched_math_backward(const at::Tensor& dout, const at::Tensor& qkv, const AttentionShape& s,
                           const AttentionState& state, const at::Tensor& dqkv, const at::Tensor& dbias) {
  const Heads h = split_heads(qkv, s), d = split_heads(dqkv, s);
  const at::Tensor grad = batched(dout.view({s.batch, s.seq, s.heads, s.head_dim}), s);
  const at::Tensor out = state.out.view({s.batch, s.seq, s.heads, s.head_dim});
  const at::Tensor dots = at::sum(batched(out, s).mul(grad), {-1}, true, statistics_type(grad));
  const at::Tensor probs = state.saved.view({s.batch * s.heads, s.seq, s.key_count()});
  gather(unbatched(at::bmm(probs.transpose(1, 2), grad), s), d.v, s, 2);
  const at::Tensor scores = at::bmm(grad, batched(h.v, s).transpose(1, 2));
  plain::softmax_backward(probs, dots, scores, scale_of(s));
  for (std::int64_t b = 0; b < s.batch; ++b)
    add_to_bias(dbias, scores.view(state.saved.sizes()).select(0, b));
  at::Tensor(d.q).copy_(unbatched(at::bmm(scores, batched(h.k, s)), s));
  gather(unbatched(at::bmm(scores.transpose(1, 2), batched(h.q, s)), s), d.k, s, 2);
}

void math(const at::Tensor& qkv, const AttentionShape& s, const AttentionState& state) {
  if (way(qkv) == Way::kPlain) return batched_math(qkv, s, state);
  const Heads h = split_heads(qkv, s);
  const at::Tensor out = state.out.view({s.batch, s.seq, s.heads, s.head_dim});
  for (std::int64_t b = 0; b < s.batch; ++b) {
    batch_product(one(h.q, b), spread(one(h.k, b), s, 0).transpose(1, 2), state.saved.select(0, b));
  }
  add_bias(state.saved, s);
  softmax(state.saved, s);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    batch_product(state.saved.select(0, b), spread(one(h.v, b), s, 0), one(out, b));
  }
}

void math_backward(const at::Tensor& dout, const at::Tensor& qkv, const AttentionShape& s,
                   const AttentionState& state, const at::Tensor& dqkv, const at::Tensor& dbias) {
  if (way(qkv) == Way::kPlain) return batched_math_backward(dout, qkv, s, state, dqkv, dbias);
  const Heads h = split_heads(qkv, s), d = split_heads(dqkv, s);
  const at::Tensor grad = dout.view({s.batch, s.seq, s.heads, s.head_dim});
  const at::Tensor dp = at::empty({s.heads, s.seq, s.key_count()}, qkv.options());
  const at::Tensor dkv = at::empty({s.heads, s.key_count(), s.head_dim}, qkv.options());
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const at::Tensor p = state.saved.select(0, b), g = one(grad, b);
    batch_product(p.transpose(1, 2), g, dkv);
    gather(dkv, one(d.v, b), s, 0);
    batch_product(g, spread(one(h.v, b), s, 0).transpose(1, 2), dp);
    softmax_backward(p, dp, s);
    add_to_bias(dbias, dp);
    batch_product(dp, spread(one(h.k, b), s, 0), one(d.q, b));
    batch_product(dp.transpose(1, 2), one(h.q, b), dkv);
    gather(dkv, one(d.k, b), s, 0);
  }
}

}  // namespace

at::Tensor window_mask(const AttentionShape& s, const at::TensorOptions& options) {
  const at::Tensor probe = at::empty({0}, options);
  if (s.kernel == AttentionKernel::kMath || !windowed(s) || probe.is_cuda() ||
      (probe.is_meta() && path() == Path::kPlain))
    return {};
  at::Tensor mask = at::empty({s.seq, s.seq}, options);
  if (mask.is_meta()) return mask;
  memory::ScratchScope scratch;
  const at::Tensor at_row = at::arange(s.seq).unsqueeze(1), at_column = at::arange(s.seq).unsqueeze(0);
  const at::Tensor hidden = at_column.gt(at_row).logical_or(at_column.le(at_row.sub(*s.window)));
  mask.zero_().masked_fill_(hidden, -std::numeric_limits<double>::infinity());
  return mask;
}

AttentionState attention(const at::Tensor& qkv, const AttentionShape& s, const at::Tensor& mask) {
  const bool math_itself = s.kernel == AttentionKernel::kMath;
  TORCH_CHECK(!math_itself || !s.sinks.defined(), "attention math has no sinks");
  TORCH_CHECK(!s.bias.defined() || (math_itself && !s.scaled && !s.autocast),
              "only attention math has a bias, of scores that are not scaled");
  if (!math_itself && (qkv.is_cuda() || (qkv.is_meta() && path() == Path::kPlain))) {
    AttentionState state = library_attention(qkv, s);
    take_sinks(s, state);
    return state;
  }
  const auto lse_options = qkv.options().dtype(statistics_type(qkv));
  if (math_itself && s.autocast) {
    AttentionState state{at::empty({s.batch * s.seq, s.heads * s.head_dim}, qkv.options()), {}, mask};
    eager_math(qkv, s, state);
    return state;
  }
  AttentionState state{at::empty({s.batch * s.seq, s.heads * s.head_dim}, qkv.options()),
                       math_itself ? at::empty({s.batch, s.heads, s.seq, s.key_count()}, qkv.options())
                                   : at::empty({s.batch, s.seq, s.heads}, lse_options),
                       mask};
  if (math_itself)
    math(qkv, s, state);
  else if (qkv.is_cpu())
    each_document(s, [&](const AttentionShape& one, std::int64_t first) {
      cpu_flash(document_rows(qkv, one, first), one, document_state(state, one, first));
    });
  take_sinks(s, state);
  return state;
}

void attention_backward(const at::Tensor& dout, const at::Tensor& qkv, const AttentionShape& s,
                        const AttentionState& state, const at::Tensor& dqkv, const Angles& angles,
                        const at::Tensor& dbias) {
  const bool math = s.kernel == AttentionKernel::kMath;
  if (!math && (qkv.is_cuda() || (qkv.is_meta() && path() == Path::kPlain)))
    return library_attention_backward(dout, qkv, s, state, dqkv, angles);
  if (math && s.autocast)
    eager_math_backward(dout, qkv, s, state, dqkv);
  else if (math)
    math_backward(dout, qkv, s, state, dqkv, dbias);
  else if (qkv.is_cpu())
    each_document(s, [&](const AttentionShape& one, std::int64_t first) {
      cpu_flash_backward(document_rows(dout, one, first), document_rows(qkv, one, first), one,
                         document_state(state, one, first), document_rows(dqkv, one, first));
    });
  turn_back(dqkv, s, angles);
}

}  // namespace sweep::kernels
