#include "bench_kernels/kernels/ops.h"

#include <ATen/ATen.h>

#include "bench_kernels/kernels/dispatch.h"

namespace sweep::kernels {

bool norm_starts_product(const at::Tensor& x) {
  return way(x, Fused::kNorm) == FusedWay::kDevice;
}

NormStats norm(const at::Tensor& x, const Norm& p, const at::Tensor& y, const Start& start) {
  const std::int64_t rows = x.size(0), n = x.size(1);
  const auto options = x.options().dtype(accumulate_type(x.scalar_type()));
  NormStats stats{p.rms() ? at::Tensor() : at::empty({rows}, options), at::empty({rows}, options)};
  const FusedWay by = way(x, Fused::kNorm);
  if (by == FusedWay::kDevice) device::norm(x, p, y, stats, start);
  if (by == FusedWay::kPlain) plain::norm(x, p, y, stats);
  if (by != FusedWay::kRows) return stats;
  by_type(x, [&]<class T>() {
    using A = typename RowKernels<T>::A;
    const auto& k = row_kernels<T>();
    over_rows(rows, n, [&](std::int64_t begin, std::int64_t end) {
      if (p.rms()) {
        k.rms_norm(data<T>(x), data<T>(p.w), data<T>(y), data<A>(stats.rstd), begin, end, n, p.eps, p.plus);
      } else {
        k.layer_norm(data<T>(x), data<T>(p.w), data<T>(p.b), data<T>(y), data<A>(stats.mean),
                     data<A>(stats.rstd), begin, end, n, p.eps);
      }
    });
  });
  return stats;
}

void norm_backward(const at::Tensor& dy, const at::Tensor& x, const Norm& p, const NormStats& stats,
                   const at::Tensor& residual, const at::Tensor& dx, const GradOut& dw, const GradOut& db) {
  const FusedWay by = way(x, Fused::kNorm);
  if (by == FusedWay::kDevice) return device::norm_backward(dy, x, p, stats, residual, dx, dw, db);
  if (by == FusedWay::kPlain) return plain::norm_backward(dy, x, p, stats, residual, dx, dw, db);
  if (by == FusedWay::kNothing) return;
  const std::int64_t rows = x.size(0), n = x.size(1);
  by_type(x, [&]<class T>() {
    using A = typename RowKernels<T>::A;
    const auto& k = row_kernels<T>();
    const auto sums =
        over_rows_summing<A>(rows, p.rms() ? n : 2 * n, [&](std::int64_t begin, std::int64_t end, A* out) {
          if (p.rms()) {
            k.rms_norm_backward(data<T>(dy), data<T>(x), data<T>(p.w), data<A>(stats.rstd), data<T>(residual),
                                data<T>(dx), out, begin, end, n, p.plus);
          } else {
            k.layer_norm_backward(data<T>(dy), data<T>(x), data<T>(p.w), data<A>(stats.mean),
                                  data<A>(stats.rstd), data<T>(residual), data<T>(dx), out, out + n, begin,
                                  end, n);
          }
        });
    k.store_sums(sums.data(), data<T>(dw.grad), n, dw.add);
    if (!p.rms()) k.store_sums(sums.data() + n, data<T>(db.grad), n, db.add);
  });
}

void rope(const at::Tensor& rows, std::int64_t heads, std::int64_t head_dim, const at::Tensor& cos,
          const at::Tensor& sin, bool backward) {
  const FusedWay by = way(rows, Fused::kRope);
  if (by == FusedWay::kDevice) return device::rope(rows, heads, head_dim, cos, sin, backward);
  if (by == FusedWay::kPlain) return plain::rope(rows, heads, head_dim, cos, sin, backward);
  if (by == FusedWay::kNothing) return;
  by_type(rows, [&]<class T>() {
    using A = typename RowKernels<T>::A;
    over_rows(rows.size(0), heads * head_dim, [&](std::int64_t begin, std::int64_t end) {
      row_kernels<T>().rope(data<T>(rows), rows.stride(0), begin, end, cos.size(0), heads, head_dim,
                            data<A>(cos), data<A>(sin), backward ? A(-1) : A(1));
    });
  });
}

void activation(Activation kind, const at::Tensor& in, const at::Tensor& out) {
  const FusedWay by = way(in, Fused::kMlp);
  if (by == FusedWay::kDevice) return device::activation(kind, in, out);
  if (by == FusedWay::kPlain) return plain::activation(kind, in, out);
  if (by == FusedWay::kNothing) return;
  const std::int64_t n = out.size(1);
  by_type(in, [&]<class T>() {
    const auto loop = row_kernels<T>().activations[static_cast<std::size_t>(kind)].forward;
    over_rows(out.size(0), n,
              [&](std::int64_t begin, std::int64_t end) { loop(data<T>(in), data<T>(out), begin, end, n); });
  });
}

void activation_backward(Activation kind, const at::Tensor& in, const at::Tensor& grad) {
  const FusedWay by = way(in, Fused::kMlp);
  if (by == FusedWay::kDevice) return device::activation_backward(kind, in, grad);
  if (by == FusedWay::kPlain) return plain::activation_backward(kind, in, grad);
  if (by == FusedWay::kNothing) return;
  const std::int64_t n = grad.size(1);
  by_type(in, [&]<class T>() {
    const auto loop = row_kernels<T>().activations[static_cast<std::size_t>(kind)].backward;
    over_rows(grad.size(0), n,
              [&](std::int64_t begin, std::int64_t end) { loop(data<T>(in), data<T>(grad), begin, end, n); });
  });
}

void add_squares(const at::Tensor& flat, double weight, const at::Tensor& total) {
  if (way(flat) == Way::kNothing) return;
  if (way(flat) == Way::kPlain) return plain::add_squares(flat, weight, total);
  by_type(flat, [&]<class T>() {
    const auto sum =
        over_rows_summing<double>(flat.numel(), 1, [&](std::int64_t begin, std::int64_t end, double* out) {
          *out += row_kernels<T>().squares(data<T>(flat), begin, end);
        });
    *data<double>(total) += weight * sum[0];
  });
}

void fill_uniform(const at::Tensor& out, std::uint64_t key, double bound, const Region& region,
                  at::Device on) {
  if (out.is_meta() && way(out) == Way::kNothing) return;
  if (!on.is_cpu() || way(out) == Way::kPlain) return plain::fill_uniform(out, key, bound, region, on);
  const std::int64_t width = out.size(1), stride = out.stride(0);
  by_type(out, [&]<class T>() {
    using A = typename RowKernels<T>::A;
    at::parallel_for(0, out.numel(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {  // row by row
        const std::int64_t row = begin / width, column = begin % width;
        const std::int64_t count = std::min(end - begin, width - column);
        row_kernels<T>().fill_uniform(data<T>(out) + row * stride + column,
                                      region.first + row * region.columns + column, count, key,
                                      static_cast<A>(bound));
        begin += count;
      }
    });
  });
}

}  // namespace sweep::kernels
