#include <ATen/ATen.h>

#include <limits>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/device/args.h"
#include "bench_kernels/kernels/device_ops.h"
#include "bench_kernels/kernels/dispatch.h"

namespace sweep::kernels {

namespace {

std::atomic<Path> g_path{Path::kFused};

// bf16 and fp16 on CPU: the library's products are some sixty times slower than fp32 ones there, so operands
// are cast.
bool needs_cast(const at::Tensor& t) {
  return t.is_cpu() && at::isReducedFloatingType(t.scalar_type());
}

// out = alpha * (a @ b) + beta * start, of rows or of blocks of rows; beta 0: start is not read.
void multiply(const at::Tensor& start, const at::Tensor& a, const at::Tensor& b, double beta, double alpha,
              at::Tensor out) {
  if (a.dim() == 2 && beta == 0 && alpha == 1) {
    at::mm_out(out, a, b);
  } else if (a.dim() == 2) {
    at::addmm_out(out, start, a, b, beta, alpha);
  } else {
    const at::Tensor of_each = b.unsqueeze(0).expand({a.size(0), -1, -1});
    if (beta == 0 && alpha == 1)
      at::bmm_out(out, a, of_each);
    else
      at::baddbmm_out(out, start, a, of_each, beta, alpha);
  }
}

// The library's own sums in fp32 of 16-bit factors. It has this for CUDA tensors alone, and takes no room.
void product_of_sums(const at::Tensor& a, const at::Tensor& b, double scale, at::Tensor out, bool add) {
  if (out.is_meta()) return;
  if (!add && scale == 1)
    at::mm_out(out, a, b, out.scalar_type());
  else
    at::addmm_out(out, out, a, b, out.scalar_type(), add ? 1 : 0, scale);
}

// Products on fp8 units: both factors are rounded to eight bits with one scale a tensor, found anew for each
// product, and the sum is taken in fp32. e4m3 for values and activations, e5m2 for gradients (Micikevicius et
// al. 2022, arXiv 2209.05433). Scales are powers of two, so that dividing by them loses nothing. REQUIRES:
// the sizes of both factors are multiples of 16 (on CUDA; no other device has such units, and on CPU the
// library computes the same slowly, for tests).
enum class Eight { kE4m3, kE5m2 };
struct Factor {
  const at::Tensor& of;
  Eight form;
};

struct Rounded {
  at::Tensor values, scale;  // the tensor is values times scale
};

double largest_of(Eight form) {
  return form == Eight::kE4m3 ? sweep::device::kLargestE4m3 : sweep::device::kLargestE5m2;
}

at::ScalarType type_of(Eight form) {
  return form == Eight::kE4m3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2;
}

// Rounds `of` by two launches of the device's kernels. REQUIRES: its rows or its columns have their elements
// side by side.
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

// out = a @ b (+ out when add).
void fp8_product(const Factor& a, const Factor& b, const at::Tensor& out, bool add) {
  const Rounded left = rounded(a, false), right = rounded(b, true);
  const bool forward = a.form == Eight::kE4m3 && b.form == Eight::kE4m3;  // may sum with fewer bits
  at::Tensor result = add ? at::empty_like(out) : out;
  if (!out.is_meta())
    at::_scaled_mm_out(result, left.values, right.values, left.scale, right.scale, {}, {}, out.scalar_type(),
                       forward);
  if (add) at::Tensor(out).add_(result);
}

void fp8_or_nothing(const Factor& a, const Factor& b, const at::Tensor& out, bool add) {
  if (way(out) == Way::kNothing) return;
  if (out.dim() == 3) {
    for (std::int64_t i = 0; i < out.size(0); ++i) fp8_or_nothing({a.of[i], a.form}, b, out[i], add);
    return;
  }
  std::optional<memory::ScratchScope> scratch;
  if (out.is_cpu()) scratch.emplace();
  fp8_product(a, b, out, add);
}

}  // namespace

void set_path(Path p) {
  g_path = p;
}
Path path() {
  return g_path;
}

at::ScalarType accumulate_type(at::ScalarType t) {
  return t == at::kDouble ? at::kDouble : at::kFloat;
}

bool writes_sums(const at::Tensor& like, at::ScalarType grads) {
  const bool on_gpu = like.is_cuda() || (like.is_meta() && path() == Path::kPlain);
  return on_gpu && grads == at::kFloat && at::isReducedFloatingType(like.scalar_type());
}

void put(const GradOut& to, const at::Tensor& value) {
  at::Tensor grad = to.grad;
  if (to.add)
    grad.add_(value);
  else
    grad.copy_(value);
}

void linear(const at::Tensor& in, const Weight& weight, const at::Tensor& residual, const at::Tensor& out) {
  if (way(out) == Way::kNothing) return;
  const at::Tensor w = weight.transposed ? weight.w : weight.w.t();
  at::Tensor result = out;
  if (weight.fp8) {
    fp8_or_nothing({in, Eight::kE4m3}, {w, Eight::kE4m3}, out, false);
    if (weight.bias.defined()) result.add_(weight.bias);
    if (residual.defined()) result.add_(residual);
    return;
  }
  const bool both = residual.defined() && weight.bias.defined();
  const at::Tensor& start = residual.defined() ? residual : weight.bias;
  if (needs_cast(out)) {
    memory::ScratchScope scratch;
    at::Tensor value = at::matmul(in.to(at::kFloat), w.to(at::kFloat));
    if (weight.bias.defined()) value.add_(weight.bias);
    if (residual.defined()) value.add_(residual);
    result.copy_(value);
    return;
  }
  std::optional<memory::ScratchScope> scratch;
  if (out.is_cpu()) scratch.emplace();
  multiply(start, in, w, start.defined() ? 1 : 0, 1, out);
  if (both) result.add_(weight.bias);
}

void linear_backward_input(const at::Tensor& dout, const Weight& weight, const at::Tensor& din) {
  const at::Tensor w = weight.transposed ? weight.w.t() : weight.w;
  if (weight.fp8) return fp8_or_nothing({dout, Eight::kE5m2}, {w, Eight::kE4m3}, din, false);
  scaled_product(dout, w, 1, din, false);
}

bool takes_blocks(const at::Tensor& like) {
  return way(like) == Way::kPlain;
}

at::Tensor rows_of(const at::Tensor& blocks) {
  return blocks.dim() == 2 ? blocks : blocks.reshape({-1, blocks.size(2)});
}

void linear_backward_weight(const at::Tensor& dout_blocks, const at::Tensor& in_blocks, bool transposed,
                            const GradOut& dw, bool fp8) {
  const at::Tensor dout = rows_of(dout_blocks), in = rows_of(in_blocks);
  const at::Tensor left = transposed ? in.t() : dout.t();
  const at::Tensor& right = transposed ? dout : in;
  if (!fp8) return scaled_product(left, right, 1, dw.grad, dw.add);
  const Eight values = Eight::kE4m3, gradients = Eight::kE5m2;
  fp8_or_nothing({left, transposed ? values : gradients}, {right, transposed ? gradients : values}, dw.grad,
                 dw.add);
}

void scaled_product(const at::Tensor& a, const at::Tensor& b, double scale, const at::Tensor& out, bool add) {
  if (way(out) == Way::kNothing) return;
  at::Tensor result = out;
  std::optional<memory::ScratchScope> scratch;
  if (out.is_cpu()) scratch.emplace();
  if (needs_cast(a)) {
    at::Tensor value = at::matmul(a.to(at::kFloat), b.to(at::kFloat));
    if (scale != 1) value.mul_(scale);
    if (add)
      result.add_(value);
    else
      result.copy_(value);
    return;
  }
  if (out.scalar_type() != a.scalar_type()) return product_of_sums(a, b, scale, out, add);
  multiply(out, a, b, add ? 1 : 0, scale, out);
}

void bias_backward(const at::Tensor& blocks, const GradOut& db) {
  const at::Tensor dout = rows_of(blocks);
  if (way(dout) == Way::kNothing) return;
  if (way(dout) == Way::kPlain) {
    at::Tensor grad = db.grad;
    if (db.add || grad.scalar_type() != dout.scalar_type()) return put(db, dout.sum(0));
    at::sum_out(grad, dout, 0);
    return;
  }
  const std::int64_t rows = dout.size(0), n = dout.size(1), stride = dout.stride(0);
  by_type(dout, [&]<class T>() {
    using A = typename RowKernels<T>::A;
    const auto sums = over_rows_summing<A>(rows, n, [&](std::int64_t begin, std::int64_t end, A* out) {
      row_kernels<T>().column_sums(data<T>(dout), stride, out, begin, end, n);
    });
    row_kernels<T>().store_sums(sums.data(), data<T>(db.grad), n, db.add);
  });
}

void add(const at::Tensor& to, const at::Tensor& what) {
  if (!what.defined() || way(to) == Way::kNothing) return;
  at::Tensor sum = to;
  sum.add_(what);
}

}  // namespace sweep::kernels
