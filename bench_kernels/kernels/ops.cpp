#include "bench_kernels/kernels/ops.h"

#include <ATen/ATen.h>

#include "bench_kernels/kernels/dispatch.h"

namespace sweep::kernels {

NormStats norm(const at::Tensor& x, const Norm& p, const at::Tensor& y) {
  const std::int64_t rows = x.size(0), n = x.size(1);
  const auto options = x.options().dtype(accumulate_type(x.scalar_type()));
  NormStats stats{p.rms() ? at::Tensor() : at::empty({rows}, options), at::empty({rows}, options)};
  if (way(x) == Way::kNothing) return stats;
  if (way(x) == Way::kPlain) return plain::norm(x, p, y, stats);
  by_type(x, [&]<class T>() {
    using A = typename RowKernels<T>::A;
    const auto& k = row_kernels<T>();
    over_rows(rows, n, [&](std::int64_t begin, std::int64_t end) {
      if (p.rms()) {
        k.rms_norm(data<T>(x), data<T>(p.w), data<T>(y), data<A>(stats.rstd), begin, end, n, p.eps);
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
  if (way(x) == Way::kNothing) return;
  if (way(x) == Way::kPlain) return plain::norm_backward(dy, x, p, stats, residual, dx, dw, db);
  const std::int64_t rows = x.size(0), n = x.size(1);
  by_type(x, [&]<class T>() {
    using A = typename RowKernels<T>::A;
    const auto& k = row_kernels<T>();
    const auto sums =
        over_rows_summing<A>(rows, p.rms() ? n : 2 * n, [&](std::int64_t begin, std::int64_t end, A* out) {
          if (p.rms()) {
            k.rms_norm_backward(data<T>(dy), data<T>(x), data<T>(p.w), data<A>(stats.rstd), data<T>(residual),
                                data<T>(dx), out, begin, end, n);
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
  if (way(rows) == Way::kNothing) return;
  if (way(rows) == Way::kPlain) return plain::rope(rows, heads, head_dim, cos, sin, backward);
  by_type(rows, [&]<class T>() {
    using A = typename RowKernels<T>::A;
    over_rows(rows.size(0), heads * head_dim, [&](std::int64_t begin, std::int64_t end) {
      row_kernels<T>().rope(data<T>(rows), rows.stride(0), begin, end, cos.size(0), heads, head_dim,
                            data<A>(cos), data<A>(sin), backward ? A(-1) : A(1));
    });
  });
}

void activation(Activation kind, const at::Tensor& in, const at::Tensor& out) {
  if (way(in) == Way::kNothing) return;
  if (way(in) == Way::kPlain) return plain::activation(kind, in, out);
  const std::int64_t n = out.size(1);
  by_type(in, [&]<class T>() {
    const auto& k = row_kernels<T>();
    over_rows(out.size(0), n, [&](std::int64_t begin, std::int64_t end) {
      (kind == Activation::kSwiglu ? k.swiglu : k.gelu)(data<T>(in), data<T>(out), begin, end, n);
    });
  });
}

void activation_backward(Activation kind, const at::Tensor& in, const at::Tensor& grad) {
  if (way(in) == Way::kNothing) return;
  if (way(in) == Way::kPlain) return plain::activation_backward(kind, in, grad);
  const std::int64_t n = grad.size(1);
  by_type(in, [&]<class T>() {
    const auto& k = row_kernels<T>();
    over_rows(grad.size(0), n, [&](std::int64_t begin, std::int64_t end) {
      (kind == Activation::kSwiglu ? k.swiglu_backward : k.gelu_backward)(data<T>(in), data<T>(grad), begin,
                                                                          end, n);
    });
  });
}

void embed(const at::Tensor& table, const at::Tensor& positions, const at::Tensor& tokens, std::int64_t seq,
           const at::Tensor& out) {
  if (way(out) == Way::kNothing) return;
  if (way(out) == Way::kPlain) return plain::embed(table, positions, tokens, seq, out);
  by_type(out, [&]<class T>() {
    over_rows(out.size(0), out.size(1), [&](std::int64_t begin, std::int64_t end) {
      row_kernels<T>().embed(data<T>(table), data<T>(positions), data<std::int64_t>(tokens), data<T>(out),
                             begin, end, seq, out.size(1));
    });
  });
}

void embed_backward(const at::Tensor& dout, const at::Tensor& tokens, std::int64_t seq, const GradOut& dtable,
                    const GradOut& dpositions) {
  if (way(dout) == Way::kNothing) return;
  if (way(dout) == Way::kPlain) return plain::embed_backward(dout, tokens, seq, dtable, dpositions);
  const std::int64_t rows = dout.size(0), n = dout.size(1);
  at::Tensor table = dtable.grad;
  if (!dtable.add) table.zero_();
  by_type(dout, [&]<class T>() {
    // Split by columns: each thread adds all rows in order, so a repeated token's sum never depends on the
    // threads.
    at::parallel_for(0, n, 64, [&](std::int64_t first, std::int64_t last) {
      row_kernels<T>().embed_backward(data<T>(dout), data<std::int64_t>(tokens), data<T>(table), rows, n,
                                      first, last);
    });
    if (!dpositions.grad.defined()) return;
    using A = typename RowKernels<T>::A;
    at::Tensor positions = dpositions.grad;
    if (!dpositions.add) positions.zero_();
    at::parallel_for(0, seq, 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t s = begin; s < end; ++s) {
        std::vector<A> sums(static_cast<std::size_t>(n), A(0));
        row_kernels<T>().column_sums(data<T>(dout) + s * n, seq * n, sums.data(), 0, rows / seq, n);
        row_kernels<T>().store_sums(sums.data(), data<T>(positions) + s * n, n, true);
      }
    });
  });
}

void cross_entropy(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& lse,
                   const at::Tensor& total) {
  if (way(logits) == Way::kNothing) return;
  if (way(logits) == Way::kPlain) return plain::cross_entropy(logits, labels, lse, total);
  const std::int64_t rows = logits.size(0), n = logits.size(1);
  by_type(logits, [&]<class T>() {
    using A = typename RowKernels<T>::A;
    const auto sum =
        over_rows_summing<double>(rows, 1, [&](std::int64_t begin, std::int64_t end, double* out) {
          *out += row_kernels<T>().cross_entropy(data<T>(logits), data<std::int64_t>(labels), data<A>(lse),
                                                 begin, end, n);
        });
    *data<double>(total) += sum[0];
  });
}

void cross_entropy_backward(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& lse,
                            double scale) {
  if (way(logits) == Way::kNothing) return;
  if (way(logits) == Way::kPlain) return plain::cross_entropy_backward(logits, labels, lse, scale);
  const std::int64_t rows = logits.size(0), n = logits.size(1);
  by_type(logits, [&]<class T>() {
    using A = typename RowKernels<T>::A;
    over_rows(rows, n, [&](std::int64_t begin, std::int64_t end) {
      row_kernels<T>().cross_entropy_backward(data<T>(logits), data<std::int64_t>(labels), data<A>(lse),
                                              static_cast<A>(scale), begin, end, n);
    });
  });
}

void fill_uniform(const at::Tensor& out, std::uint64_t key, double bound, const Region& region) {
  if (out.is_meta()) return;
  const at::Tensor host =
      out.is_cpu() && out.is_contiguous() ? out : at::empty(out.sizes(), out.options().device(at::kCPU));
  const std::int64_t width = region.columns && host.dim() > 1 ? host.size(1) : host.numel();
  const std::int64_t stride = region.columns && host.dim() > 1 ? region.columns : width;
  by_type(host, [&]<class T>() {
    using A = typename RowKernels<T>::A;
    at::parallel_for(0, host.numel(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {  // row by row
        const std::int64_t row = begin / width, column = begin % width;
        const std::int64_t count = std::min(end - begin, width - column);
        row_kernels<T>().fill_uniform(data<T>(host) + begin, region.first + row * stride + column, count, key,
                                      static_cast<A>(bound));
        begin += count;
      }
    });
  });
  at::Tensor target = out;
  if (!host.is_same(out)) target.copy_(host);
}

}  // namespace sweep::kernels
