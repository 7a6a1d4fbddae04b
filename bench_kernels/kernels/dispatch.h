// Private to this room: how an operation reaches the loops of its type, on which rows, on which threads.
#pragma once
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <vector>

#include "bench_kernels/kernels/device_ops.h"
#include "bench_kernels/kernels/ops.h"
#include "bench_kernels/kernels/rows.h"

namespace sweep::kernels {

enum class Way { kRows, kNothing, kPlain };
inline Way way(const at::Tensor& t) {
  if (path() == Path::kFused && t.is_cpu()) return Way::kRows;
  if (path() == Path::kFused && t.is_meta()) return Way::kNothing;
  return Way::kPlain;
}

// Whether the fused kernels of a device run on it; of meta tensors on behalf of CUDA.
inline bool has_device_kernels(const at::Tensor& t) {
  if (t.is_cuda()) return device::has_launcher();
  return path() == (t.is_meta() ? Path::kPlain : Path::kDevice);
}

// The same for an operation that has a fused kernel of a device: kDevice where that runs, and on meta tensors
// on behalf of CUDA. Switched off: the plain equivalent, on a CPU too.
enum class FusedWay { kRows, kNothing, kPlain, kDevice };
inline FusedWay way(const at::Tensor& t, Fused group) {
  if (!fused(group)) return FusedWay::kPlain;
  if (has_device_kernels(t)) return FusedWay::kDevice;
  switch (way(t)) {
    case Way::kRows:
      return FusedWay::kRows;
    case Way::kNothing:
      return FusedWay::kNothing;
    default:
      return FusedWay::kPlain;
  }
}

template <class T>
T* data(const at::Tensor& t) {
  return t.defined() ? static_cast<T*>(t.mutable_data_ptr()) : nullptr;
}

// f is a template lambda over the stored type: f.template operator()<T>().
template <class F>
void by_type(const at::Tensor& t, F&& f) {
  switch (t.scalar_type()) {
    case at::kFloat:
      return f.template operator()<float>();
    case at::kBFloat16:
      return f.template operator()<Bf16>();
    case at::kHalf:
      return f.template operator()<Fp16>();
    case at::kDouble:
      return f.template operator()<double>();
    default:
      TORCH_CHECK(false, "the step computes in fp32, bf16, fp16 or fp64, not in ", t.scalar_type());
  }
}

// f(begin, end) over ranges of rows, each range worth about 32k elements or more.
template <class F>
void over_rows(std::int64_t rows, std::int64_t width, const F& f) {
  at::parallel_for(0, rows, std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, width)), f);
}

// Like over_rows, for loops that also sum over rows: f(begin, end, sums) gets `columns` zeroed sums of its
// own per range; the ranges depend on the thread count only and are added in order, so a result repeats bit
// by bit.
template <class A, class F>
std::vector<A> over_rows_summing(std::int64_t rows, std::int64_t columns, const F& f) {
  const std::int64_t parts =
      std::max<std::int64_t>(1, std::min<std::int64_t>(at::get_num_threads(), rows / 16));
  std::vector<A> sums(static_cast<std::size_t>(parts * columns), A(0));
  at::parallel_for(0, parts, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t p = first; p < last; ++p)
      f(rows * p / parts, rows * (p + 1) / parts, sums.data() + p * columns);
  });
  for (std::int64_t p = 1; p < parts; ++p) {
    for (std::int64_t i = 0; i < columns; ++i) sums[i] += sums[p * columns + i];
  }
  sums.resize(static_cast<std::size_t>(columns));
  return sums;
}

// The plain equivalents (plain.cpp): compositions of library operators, for CUDA and for comparison.
namespace plain {
NormStats norm(const at::Tensor& x, const Norm&, const at::Tensor& y, const NormStats&);
void norm_backward(const at::Tensor& dy, const at::Tensor& x, const Norm&, const NormStats&,
                   const at::Tensor& residual, const at::Tensor& dx, const GradOut& dw, const GradOut& db);
void rope(const at::Tensor& rows, std::int64_t heads, std::int64_t head_dim, const at::Tensor& cos,
          const at::Tensor& sin, bool backward);
void activation(Activation, const at::Tensor& in, const at::Tensor& out);
void activation_backward(Activation, const at::Tensor& in, const at::Tensor& grad);
// plain_softmax.cpp
// scores: [B, heads, S, S]. places: Documents::places, or undefined.
void causal_softmax(const at::Tensor& scores, std::int64_t window, double scale, const at::Tensor& places);
// Over all keys, in place.
void softmax(const at::Tensor& scores, double scale);
// The result takes the place of grad, without a temporary of its size. dots: products of the rows of grad and probs.
void softmax_backward(const at::Tensor& probs, const at::Tensor& dots, const at::Tensor& grad, double scale);
void embed(const at::Tensor& table, const at::Tensor& positions, const Tokens&, const at::Tensor& out);
void embed_backward(const at::Tensor& dout, const Tokens&, const GradOut& dtable, const GradOut& dpositions);
void cross_entropy(const at::Tensor& logits, const Labels&, double scale, const at::Tensor& total);
void cross_entropy_share(const at::Tensor& logits, const Labels&, std::int64_t first, const at::Tensor& lse,
                         const at::Tensor& picked);
void cross_entropy_backward(const at::Tensor& logits, const Labels&, const at::Tensor& lse, double scale,
                            std::int64_t first);
void add_squares(const at::Tensor& flat, double weight, const at::Tensor& total);
void fill_uniform(const at::Tensor& out, std::uint64_t key, double bound, const Region&, at::Device on);
}  // namespace plain

}  // namespace sweep::kernels
