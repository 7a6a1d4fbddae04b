#include "bench_kernels/model/post_norm.h"

#include <ATen/ATen.h>

namespace sweep::model {

PostNorm::PostNorm(const StageContext& shared, std::int64_t layer, std::string_view module)
    : shared_(shared) {
  if (!module.empty()) norm_ = add_norm(shared, in_layer(shared.spec, layer, module));
}

at::Tensor PostNorm::forward(at::Tensor rows, const at::Tensor& residual, Kept& kept) const {
  if (!there()) return rows;
  kept.before = std::move(rows);
  const at::Tensor out = at::empty_like(kept.before);
  kept.stats = kernels::norm(kept.before, norm_of(shared_, norm_), out);
  kernels::add(out, residual);
  return out;
}

at::Tensor PostNorm::backward(const at::Tensor& grad, Kept& kept) const {
  if (!there()) return grad;
  const at::Tensor before = at::empty_like(grad);
  backward_norm(shared_, norm_, grad, kept.before, kept.stats, {}, before);
  kept = {};
  return before;
}

}  // namespace sweep::model
