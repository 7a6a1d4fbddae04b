// Every operation of ops.h as a composition of library operators: what CUDA runs, and the reference for the
// fused loops. Results in the stored type go through the accumulation type, as the fused loops do.
#include <ATen/ATen.h>

#include <cmath>

#include "bench_kernels/kernels/dispatch.h"
#include "bench_kernels/kernels/held_tokens.h"

namespace sweep::kernels::plain {

namespace {

at::Tensor wide(const at::Tensor& t) {
  return t.to(accumulate_type(t.scalar_type()));
}

void assign(const at::Tensor& target, const at::Tensor& value) {
  at::Tensor t = target;
  t.copy_(value);
}

at::Tensor gelu_tanh(const at::Tensor& x) {
  return x.pow(3).mul_(0.044715).add_(x).mul_(std::sqrt(2.0 / M_PI)).tanh_();
}

// The slope of GELU where its tanh is t.
at::Tensor gelu_slope(const at::Tensor& x, const at::Tensor& t) {
  const at::Tensor inner = x.square().mul_(3 * 0.044715).add_(1).mul_(std::sqrt(2.0 / M_PI));
  return t.square().neg_().add_(1).mul_(x).mul_(inner).add_(t).add_(1).mul_(0.5);
}

}  // namespace

namespace {

// The weights of an RMSNorm, plus what is added to them.
at::Tensor factors(const Norm& p) {
  if (p.plus == 0) return p.w;
  return p.w.to(accumulate_type(p.w.scalar_type()), /*non_blocking=*/false, /*copy=*/true).add_(p.plus);
}

}  // namespace

NormStats norm(const at::Tensor& x, const Norm& p, const at::Tensor& y, const NormStats& stats) {
  const at::Tensor wx = wide(x);
  if (p.rms()) {
    assign(stats.rstd, wx.square().mean(-1).add_(p.eps).rsqrt_());
    assign(y, wx.mul(stats.rstd.unsqueeze(1)).mul_(factors(p)));
    return stats;
  }
  assign(stats.mean, wx.mean(-1));
  const at::Tensor centred = wx.sub(stats.mean.unsqueeze(1));
  assign(stats.rstd, centred.square().mean(-1).add_(p.eps).rsqrt_());
  assign(y, centred.mul(stats.rstd.unsqueeze(1)).mul_(p.w).add_(p.b));
  return stats;
}

void norm_backward(const at::Tensor& dy, const at::Tensor& x, const Norm& p, const NormStats& stats,
                   const at::Tensor& residual, const at::Tensor& dx, const GradOut& dw, const GradOut& db) {
  const at::Tensor g = wide(dy), r = stats.rstd.unsqueeze(1);
  const at::Tensor hat = p.rms() ? wide(x).mul(r) : wide(x).sub(stats.mean.unsqueeze(1)).mul_(r);
  put(dw, g.mul(hat).sum(0));
  if (!p.rms()) put(db, g.sum(0));
  const at::Tensor gw = g.mul(factors(p));
  at::Tensor value = gw.sub(hat.mul(gw.mul(hat).mean(-1, true)));
  if (!p.rms()) value.sub_(gw.mean(-1, true));
  value.mul_(r);
  if (residual.defined()) value.add_(residual);
  assign(dx, value);
}

void rope(const at::Tensor& rows, std::int64_t heads, std::int64_t head_dim, const at::Tensor& cos,
          const at::Tensor& sin, bool backward) {
  const std::int64_t seq = cos.size(0), half = head_dim / 2;
  const at::Tensor x =
      rows.narrow(1, 0, heads * head_dim).unflatten(1, {heads, head_dim}).unflatten(0, {-1, seq});
  const at::Tensor c = cos.unsqueeze(1), s = backward ? sin.neg().unsqueeze(1) : sin.unsqueeze(1);
  const at::Tensor a = x.narrow(3, 0, half), b = x.narrow(3, half, half);
  const at::Tensor turned_a = wide(a).mul(c).sub_(wide(b).mul(s));
  const at::Tensor turned_b = wide(b).mul(c).add_(wide(a).mul(s));
  assign(a, turned_a);
  assign(b, turned_b);
}

void activation(Activation kind, const at::Tensor& in, const at::Tensor& out) {
  if (kind == Activation::kSwiglu) {
    const std::int64_t n = out.size(1);
    const at::Tensor gate = wide(in.narrow(1, 0, n));
    assign(out, gate.sigmoid().mul_(gate).mul_(in.narrow(1, n, n)));
  } else if (kind == Activation::kGeglu) {
    const std::int64_t n = out.size(1);
    const at::Tensor gate = wide(in.narrow(1, 0, n));
    assign(out, gelu_tanh(gate).add_(1).mul_(gate).mul_(0.5).mul_(in.narrow(1, n, n)));
  } else if (kind == Activation::kClampedSwiglu) {
    const std::int64_t n = out.size(1);
    const at::Tensor gate = wide(in.narrow(1, 0, n)).clamp_max(kSwigluLimit);
    const at::Tensor up = wide(in.narrow(1, n, n)).clamp(-kSwigluLimit, kSwigluLimit).add_(1);
    assign(out, gate.mul(kSwigluGain).sigmoid_().mul_(gate).mul_(up));
  } else if (kind == Activation::kGeluExact) {
    const at::Tensor x = wide(in);
    assign(out, x.mul(M_SQRT1_2).erf_().add_(1).mul_(x).mul_(0.5));
  } else if (kind == Activation::kRelu) {
    assign(out, wide(in).clamp_min(0));
  } else {
    const at::Tensor x = wide(in);
    assign(out, gelu_tanh(x).add_(1).mul_(x).mul_(0.5));
  }
}

namespace {

// d: the gradient of the result in the accumulation type.
void clamped_swiglu_backward(const at::Tensor& in, const at::Tensor& grad, const at::Tensor& d) {
  const std::int64_t n = grad.size(1);
  const at::Tensor gate = in.narrow(1, 0, n), up = in.narrow(1, n, n);
  const at::Tensor g = wide(gate).clamp_max(kSwigluLimit), s = g.mul(kSwigluGain).sigmoid_(), glu = g.mul(s);
  const at::Tensor beside = wide(up).clamp(-kSwigluLimit, kSwigluLimit).add_(1), out = glu.mul(beside);
  const at::Tensor dgate = g.sub_(glu).mul_(kSwigluGain).add_(1).mul_(s).mul_(beside).mul_(d);
  dgate.masked_fill_(gate.gt(kSwigluLimit), 0.0);
  const at::Tensor outside = up.gt(kSwigluLimit).bitwise_or_(up.lt(-kSwigluLimit));
  assign(up, glu.mul_(d).masked_fill_(outside, 0.0));
  assign(gate, dgate);
  assign(grad, out);
}

}  // namespace

// wide() may be the tensor itself: every value is computed before the first is stored.
void activation_backward(Activation kind, const at::Tensor& in, const at::Tensor& grad) {
  const at::Tensor d = wide(grad);
  if (kind == Activation::kSwiglu) {
    const std::int64_t n = grad.size(1);
    const at::Tensor gate = in.narrow(1, 0, n), up = in.narrow(1, n, n);
    const at::Tensor g = wide(gate), u = wide(up), s = g.sigmoid(), silu = g.mul(s);
    const at::Tensor out = silu.mul(u);
    const at::Tensor dgate = g.add(1).sub_(silu).mul_(s).mul_(u).mul_(d);
    assign(up, silu.mul_(d));
    assign(gate, dgate);
    assign(grad, out);
    return;
  }
  if (kind == Activation::kGeglu) {
    const std::int64_t n = grad.size(1);
    const at::Tensor gate = in.narrow(1, 0, n), up = in.narrow(1, n, n);
    const at::Tensor g = wide(gate), u = wide(up), t = gelu_tanh(g);
    const at::Tensor gelu = t.add(1).mul_(g).mul_(0.5), out = gelu.mul(u);
    const at::Tensor dgate = gelu_slope(g, t).mul_(u).mul_(d);
    assign(up, gelu.mul(d));
    assign(gate, dgate);
    assign(grad, out);
    return;
  }
  if (kind == Activation::kClampedSwiglu) return clamped_swiglu_backward(in, grad, d);
  if (kind == Activation::kGeluExact) {
    const at::Tensor x = wide(in), below = x.mul(M_SQRT1_2).erf_().add_(1).mul_(0.5), out = below.mul(x);
    const at::Tensor slope =
        x.square().mul_(-0.5).exp_().mul_(M_SQRT1_2 * M_2_SQRTPI / 2).mul_(x).add_(below);
    assign(in, slope.mul_(d));
    assign(grad, out);
    return;
  }
  if (kind == Activation::kRelu) {
    const at::Tensor x = wide(in), out = x.clamp_min(0);
    assign(in, at::threshold_backward(d, x, 0));
    assign(grad, out);
    return;
  }
  const at::Tensor x = wide(in), t = gelu_tanh(x);
  const at::Tensor out = t.add(1).mul_(x).mul_(0.5);
  assign(in, gelu_slope(x, t).mul_(d));
  assign(grad, out);
}

void embed(const at::Tensor& table, const at::Tensor& positions, const Tokens& tokens,
           const at::Tensor& out) {
  at::Tensor result = out;
  const HeldTokens held(tokens.ids, tokens.first, table.size(0));
  at::index_out(result, table, {std::optional<at::Tensor>(held.index)});
  held.clear(result);
  if (!positions.defined()) return;
  at::Tensor rows = result.unflatten(0, {-1, tokens.seq});
  rows.add_(tokens.places.defined() ? at::index(positions, {std::optional<at::Tensor>(tokens.places)})
                                    : positions.narrow(0, 0, tokens.seq));
}

void embed_backward(const at::Tensor& dout, const Tokens& tokens, const GradOut& dtable,
                    const GradOut& dpositions) {
  at::Tensor table = dtable.grad;
  if (!dtable.add) table.zero_();
  const HeldTokens held(tokens.ids, tokens.first, table.size(0));
  if (held.outside.defined())
    table.index_add_(0, held.index, dout.masked_fill(held.outside.unsqueeze(1), 0.0));
  else
    table.index_add_(0, held.index, dout);
  if (!dpositions.grad.defined()) return;
  at::Tensor positions = dpositions.grad;
  if (!dpositions.add) positions.zero_();
  const bool each_its_own = dout.size(0) == tokens.seq;
  const at::Tensor sums = each_its_own ? dout : dout.unflatten(0, {-1, tokens.seq}).sum(0);
  if (tokens.places.defined())
    positions.index_add_(0, tokens.places, sums);
  else
    positions.narrow(0, 0, tokens.seq).add_(sums);
}

void add_squares(const at::Tensor& flat, double weight, const at::Tensor& total) {
  // In float64 a GPU would first make a float64 copy of all of it.
  const auto type = flat.is_cpu() ? at::kDouble : at::kFloat;
  const at::Tensor norm = at::linalg_vector_norm(flat, 2, std::nullopt, false, type).to(at::kDouble);
  at::Tensor sum = total;
  sum.add_(norm.square(), weight);
}

namespace {

// The counter hash of rows_impl.h in whole numbers of 64 bits, of which 32 count: of index becomes 24 random
// bits.
void hash_counters(at::Tensor& index, std::uint64_t key) {
  constexpr std::int64_t kLow = 0xffffffff;
  const at::Tensor high = at::bitwise_right_shift(index, 32).mul_(std::int64_t{0x9e3779b9});
  index.bitwise_and_(kLow).add_(high).add_(static_cast<std::int64_t>(key & kLow)).bitwise_and_(kLow);
  const auto fold = [&](std::int64_t bits) {
    at::Tensor shifted = high;
    at::bitwise_right_shift_out(shifted, index, bits);
    index.bitwise_xor_(shifted);
  };
  fold(16);
  index.mul_(std::int64_t{0x7feb352d}).bitwise_and_(kLow);
  fold(15);
  index.bitwise_xor_(static_cast<std::int64_t>(key >> 32));
  index.mul_(std::int64_t{0x846ca68b}).bitwise_and_(kLow);
  fold(16);
  index.bitwise_right_shift_(8);
}

void fill_piece(at::Tensor out, std::uint64_t key, double bound, const Region& region, at::Device on) {
  const auto whole = at::TensorOptions(on).dtype(at::kLong);
  at::Tensor drawn;
  {
    at::Tensor index = at::arange(out.size(0), whole).mul_(region.columns).add_(region.first).unsqueeze(1) +
                       at::arange(out.size(1), whole);
    hash_counters(index, key);
    drawn = index.to(accumulate_type(out.scalar_type()));
  }
  out.copy_(drawn.mul_(1.0 / 8388608.0).sub_(1.0).mul_(bound));
}

}  // namespace

void fill_uniform(const at::Tensor& out, std::uint64_t key, double bound, const Region& region,
                  at::Device on) {
  constexpr std::int64_t kPiece = 1 << 21;  // elements: two words of eight bytes for each while it is drawn
  const std::int64_t rows = out.size(0), columns = out.size(1);
  const std::int64_t width = std::min(columns, kPiece), height = std::max<std::int64_t>(1, kPiece / width);
  for (std::int64_t row = 0; row < rows; row += height) {
    for (std::int64_t column = 0; column < columns; column += width) {
      const at::Tensor piece = out.narrow(0, row, std::min(height, rows - row))
                                   .narrow(1, column, std::min(width, columns - column));
      const std::int64_t first = region.first + row * region.columns + column;
      fill_piece(piece, key, bound, {first, region.columns}, on);
      if (out.is_meta()) return;  // no piece takes more than the first
    }
  }
}

}  // namespace sweep::kernels::plain
