#include "bench_kernels/kernels/fp8.h"

#include <ATen/ATen.h>

#include <limits>

namespace sweep::kernels {
namespace {

constexpr double kLeastLargest = 1e-30;  // stands for the largest value of a tensor of zeros

struct Rounded {
  at::Tensor values, scale;  // the tensor is values times scale
};

double largest_of(Eight form) {
  return form == Eight::kE4m3 ? 448 : 57344;
}

// The units read the left factor by rows and the right one by columns.
Rounded rounded(const Factor& factor, bool by_columns) {
  const at::Tensor scale = at::linalg_vector_norm(factor.of, std::numeric_limits<double>::infinity(),
                                                  std::nullopt, false, at::kFloat)
                               .clamp_min_(kLeastLargest)
                               .div_(largest_of(factor.form))
                               .log2_()
                               .ceil_()
                               .exp2_();
  const at::Tensor values =
      factor.of.div(scale).to(factor.form == Eight::kE4m3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2);
  return {by_columns ? values.t().contiguous().t() : values.contiguous(), scale};
}

}  // namespace

void fp8_product(const Factor& a, const Factor& b, const at::Tensor& out, bool add) {
  const Rounded left = rounded(a, false), right = rounded(b, true);
  const bool forward = a.form == Eight::kE4m3 && b.form == Eight::kE4m3;  // may sum with fewer bits
  at::Tensor result = add ? at::empty_like(out) : out;
  if (!out.is_meta())
    at::_scaled_mm_out(result, left.values, right.values, left.scale, right.scale, {}, {}, out.scalar_type(),
                       forward);
  if (add) at::Tensor(out).add_(result);
}

}  // namespace sweep::kernels
