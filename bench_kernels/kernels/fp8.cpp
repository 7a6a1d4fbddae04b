#include "bench_kernels/kernels/fp8.h"

#include <ATen/ATen.h>

#include <limits>

#include "bench_kernels/kernels/device/args.h"
#include "bench_kernels/kernels/device_ops.h"
#include "bench_kernels/kernels/dispatch.h"

namespace sweep::kernels {
namespace {

struct Rounded {
  at::Tensor values, scale;  // the tensor is values times scale
};

double largest_of(Eight form) {
  return form == Eight::kE4m3 ? sweep::device::kLargestE4m3 : sweep::device::kLargestE5m2;
}

at::ScalarType type_of(Eight form) {
  return form == Eight::kE4m3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2;
}

// Rounds `of` by two launches of the device's kernels. REQUIRES: its rows or its columns have their elements side by
// side.
Rounded rounded_by_device(const at::Tensor& of, Eight form, bool by_columns) {
  const at::Tensor wanted = by_columns ? of.t() : of;  // in rows, as the values are to lie
  const bool transposed = wanted.stride(1) != 1;
  const Rounded out{at::empty(wanted.sizes(), of.options().dtype(type_of(form))),
                    at::empty({}, of.options().dtype(at::kFloat))};
  device::round_to_eight(transposed ? wanted.t() : wanted, out.values, transposed, out.scale);
  return {by_columns ? out.values.t() : out.values, out.scale};
}

// The units read the left factor by rows and the right one by columns.
Rounded rounded(const Factor& factor, bool by_columns) {
  if (has_device_kernels(factor.of)) return rounded_by_device(factor.of, factor.form, by_columns);
  const at::Tensor scale = at::linalg_vector_norm(factor.of, std::numeric_limits<double>::infinity(),
                                                  std::nullopt, false, at::kFloat)
                               .clamp_min_(sweep::device::kLeastLargest)
                               .div_(largest_of(factor.form))
                               .log2_()
                               .ceil_()
                               .exp2_();
  const at::Tensor values = factor.of.div(scale).to(type_of(factor.form));
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
