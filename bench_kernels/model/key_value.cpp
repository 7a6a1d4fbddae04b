#include "bench_kernels/model/key_value.h"

#include <ATen/ATen.h>

namespace sweep::model {
namespace {

struct Columns {
  std::int64_t q, kv, piece, ranks;
};

Columns columns_of(const StageContext& shared) {
  const std::int64_t size = shared.spec.head_dim, kv = shared.kv_heads() * size;
  const std::int64_t ranks = shared.layout.key_value->size();
  return {shared.heads() * size, kv, kv / ranks, ranks};
}

// k and v of [rows, q | k | v] as [rank, row, k or v, column of its piece], a view.
at::Tensor pieces_of(const at::Tensor& rows, const Columns& c) {
  return rows.narrow(1, c.q, 2 * c.kv).unflatten(1, {2, c.ranks, c.piece}).permute({2, 0, 1, 3});
}

}  // namespace

at::Tensor gather_key_values(const StageContext& shared, at::Tensor rows) {
  comm::Channel& group = *shared.layout.key_value;
  if (group.alone()) return rows;
  const Columns c = columns_of(shared);
  const std::int64_t n = rows.size(0);
  const at::Tensor gathered = at::empty({c.ranks * n, 2 * c.piece}, rows.options());
  const at::Tensor mine = gathered.narrow(0, group.rank() * n, n);
  mine.copy_(rows.narrow(1, c.q, 2 * c.piece));
  const at::Tensor whole = at::empty({n, c.q + 2 * c.kv}, rows.options());
  comm::Pending pending = group.all_gather(mine, gathered);
  whole.narrow(1, 0, c.q).copy_(rows.narrow(1, 0, c.q));
  pending.wait();
  pieces_of(whole, c).copy_(gathered.view({c.ranks, n, 2, c.piece}));
  return whole;
}

at::Tensor scatter_key_values(const StageContext& shared, at::Tensor grad) {
  comm::Channel& group = *shared.layout.key_value;
  if (group.alone()) return grad;
  const Columns c = columns_of(shared);
  const std::int64_t n = grad.size(0);
  const at::Tensor packed = at::empty({c.ranks * n, 2 * c.piece}, grad.options());
  packed.view({c.ranks, n, 2, c.piece}).copy_(pieces_of(grad, c));
  const at::Tensor summed = at::empty({n, 2 * c.piece}, grad.options());
  const at::Tensor mine = at::empty({n, c.q + 2 * c.piece}, grad.options());
  comm::Pending pending = group.reduce_scatter(packed, summed);
  mine.narrow(1, 0, c.q).copy_(grad.narrow(1, 0, c.q));
  pending.wait();
  mine.narrow(1, c.q, 2 * c.piece).copy_(summed);
  return mine;
}

}  // namespace sweep::model
