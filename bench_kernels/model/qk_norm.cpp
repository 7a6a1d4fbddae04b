#include "bench_kernels/model/qk_norm.h"

#include <ATen/ATen.h>

namespace sweep::model {

QkNorm::QkNorm(const StageContext& shared, std::int64_t layer)
    : shared_(shared), there_(shape::family_of(shared.spec).qk_norm) {
  if (!there_) return;
  const shape::TensorNames& names = shape::family_of(shared.spec).names;
  query_ = add_head_norm(shared, in_layer(shared.spec, layer, names.query_norm));
  key_ = add_head_norm(shared, in_layer(shared.spec, layer, names.key_norm));
}

std::vector<at::Tensor*> QkNorm::Kept::tensors() {
  return {&query, &key, &query_stats.rstd, &key_stats.rstd};
}

// A view [rows, heads, head_dim].
at::Tensor QkNorm::columns(const at::Tensor& qkv, bool key) const {
  const std::int64_t n = shared_.spec.head_dim, heads = key ? shared_.kv_heads() : shared_.heads();
  return qkv.narrow(1, key ? shared_.heads() * n : 0, heads * n).unflatten(1, {heads, n});
}

QkNorm::Kept QkNorm::forward(const at::Tensor& qkv) const {
  Kept kept;
  if (!there_) return kept;
  const auto pass = [&](bool key, at::Tensor& before, kernels::NormStats& stats) {
    const at::Tensor heads = columns(qkv, key);
    before = at::empty({heads.size(0) * heads.size(1), heads.size(2)}, heads.options());
    before.view(heads.sizes()).copy_(heads);
    const at::Tensor after = at::empty_like(before);
    stats = kernels::norm(before, norm_of(shared_, key ? key_ : query_), after);
    heads.copy_(after.view(heads.sizes()));
  };
  pass(false, kept.query, kept.query_stats);
  pass(true, kept.key, kept.key_stats);
  return kept;
}

void QkNorm::backward(const at::Tensor& dqkv, const Kept& kept) const {
  if (!there_) return;
  const auto pass = [&](bool key, const at::Tensor& before, const kernels::NormStats& stats) {
    const at::Tensor heads = columns(dqkv, key);
    const at::Tensor grad = at::empty_like(before);
    grad.view(heads.sizes()).copy_(heads);
    backward_norm(shared_, key ? key_ : query_, grad, before, stats, {}, grad);
    heads.copy_(grad.view(heads.sizes()));
  };
  pass(true, kept.key, kept.key_stats);
  pass(false, kept.query, kept.query_stats);
}

}  // namespace sweep::model
