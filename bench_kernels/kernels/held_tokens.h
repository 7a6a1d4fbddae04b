// Private to this room: tokens of which a share of the vocabulary holds some.
#pragma once
#include <ATen/ATen.h>

#include "bench_kernels/kernels/ops.h"

namespace sweep::kernels {

// The positions of tokens in a share of the vocabulary, and a mask of those outside it (they index entry 0).
struct HeldTokens {
  at::Tensor index, outside;  // outside: undefined when all of the vocabulary is held
  HeldTokens(const at::Tensor& ids, FirstEntry first, std::int64_t held) : index(ids) {
    if (!first) return;
    index = ids.sub(*first);
    outside = index.lt(0).bitwise_or_(index.ge(held));
    index.masked_fill_(outside, 0);
  }
  void clear(const at::Tensor& rows) const {
    at::Tensor r = rows;
    if (outside.defined()) r.masked_fill_(r.dim() > 1 ? outside.unsqueeze(1) : outside, 0.0);
  }
};

}  // namespace sweep::kernels
