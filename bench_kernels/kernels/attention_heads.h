// Private to this room: heads of packed q, k and v rows (cross-attention has them flat), and the kernels of the library
// for GPUs.
#pragma once
#include <ATen/ATen.h>

#include <cmath>

#include "bench_kernels/kernels/ops.h"

namespace sweep::kernels {

struct Heads {
  at::Tensor q, k, v;  // [B, S or keys, heads or kv_heads, head_dim], views of the rows
};

inline Heads split_heads(const at::Tensor& rows, const AttentionShape& s) {
  if (s.keys > 0) {
    const std::int64_t queries = s.batch * s.seq * s.heads * s.head_dim;
    const at::Tensor kv =
        rows.narrow(0, queries, rows.numel() - queries).view({s.batch, s.keys, 2 * s.kv_heads, s.head_dim});
    return {rows.narrow(0, 0, queries).view({s.batch, s.seq, s.heads, s.head_dim}),
            kv.narrow(2, 0, s.kv_heads), kv.narrow(2, s.kv_heads, s.kv_heads)};
  }
  const at::Tensor all = rows.view({s.batch, s.seq, s.heads + 2 * s.kv_heads, s.head_dim});
  return {all.narrow(2, 0, s.heads), all.narrow(2, s.heads, s.kv_heads),
          all.narrow(2, s.heads + s.kv_heads, s.kv_heads)};
}

inline double scale_of(const AttentionShape& s) {
  return s.scaled ? 1.0 / std::sqrt(static_cast<double>(s.head_dim)) : 1.0;
}

inline bool windowed(const AttentionShape& s) {
  return s.window && *s.window < s.seq;
}

// Each key-value head once per query head that reads it (dimension `dim` holds them); no copy when they are
// as many.
inline at::Tensor spread(const at::Tensor& kv, const AttentionShape& s, std::int64_t dim) {
  if (s.heads == s.kv_heads) return kv;
  auto sizes = kv.sizes().vec();
  sizes[dim] = s.heads;
  auto expanded = kv.sizes().vec();
  expanded.insert(expanded.begin() + dim + 1, s.heads / s.kv_heads);
  return kv.unsqueeze(dim + 1).expand(expanded).reshape(sizes);
}

// The reverse for gradients: sums the query heads of each key-value head into `to`.
inline void gather(const at::Tensor& spread_grad, const at::Tensor& to, const AttentionShape& s,
                   std::int64_t dim) {
  at::Tensor target = to;
  if (s.heads == s.kv_heads) {
    if (!spread_grad.is_same(to)) target.copy_(spread_grad);
    return;
  }
  target.copy_(at::sum(spread_grad.unflatten(dim, {s.kv_heads, s.heads / s.kv_heads}), {dim + 1}));
}

// The library's kernels for GPUs (flash, memory-efficient, cuDNN's), which never have the scores in memory.
// On meta tensors: what they would allocate.
AttentionState library_attention(const at::Tensor& qkv, const AttentionShape&);
void library_attention_backward(const at::Tensor& dout, const at::Tensor& qkv, const AttentionShape&,
                                const AttentionState&, const at::Tensor& dqkv, const Angles&);

// Result and log-sum-exp of a kernel without sinks become those with the shape's (sinks.cpp).
void take_sinks(const AttentionShape&, const AttentionState&);

// Turns the gradients of q and k in rows back.
inline void turn_back(const at::Tensor& rows, const AttentionShape& s, const Angles& angles) {
  if (angles.cos.defined()) rope(rows, s.heads + s.kv_heads, s.head_dim, angles.cos, angles.sin, true);
}

}  // namespace sweep::kernels
