#include "bench_kernels/kernels/autocast.h"

#include <ATen/ATen.h>

#include <cmath>

namespace sweep::kernels {
namespace {

constexpr double kCubic = 0.044715;
const double kGeluScale = std::sqrt(2.0 / M_PI);

at::Tensor in_fp32(const at::Tensor& t) {
  return t.defined() ? t.to(at::kFloat) : t;
}

Norm in_fp32(const Norm& norm) {
  return {in_fp32(norm.w), in_fp32(norm.b), norm.eps, norm.plus};
}

// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): both factors of the last product are kept.
EagerActivation eager_gelu(at::Tensor in) {
  const auto half = in.scalar_type();
  const at::Tensor halved = in.mul(0.5), x = in.to(at::kFloat);
  in.reset();
  const at::Tensor t = x.pow(3).mul_(kCubic).add_(x).mul_(kGeluScale).tanh_(), above = t.add(1);
  return {{x, t, above, halved}, halved.to(at::kFloat).mul_(above).to(half)};
}

at::Tensor eager_gelu_backward(std::vector<at::Tensor> kept, const at::Tensor& dout) {
  const at::Tensor x = std::move(kept[0]), t = std::move(kept[1]);
  const at::Tensor above = std::move(kept[2]), halved = std::move(kept[3]);
  kept.clear();
  const at::Tensor wide = dout.to(at::kFloat);
  const at::Tensor of_halved = wide.mul(above).to(dout.scalar_type());
  wide.mul_(halved.to(at::kFloat));
  wide.mul_(t.square().neg_().add_(1)).mul_(kGeluScale);
  wide.mul_(x.square().mul_(3 * kCubic).add_(1));
  return of_halved.mul_(0.5).add_(wide.to(dout.scalar_type()));
}

at::Tensor gated(Activation kind, const at::Tensor& gate) {
  return kind == Activation::kSwiglu ? at::silu(gate) : at::gelu(gate, "tanh");
}

EagerActivation eager_gate(Activation kind, const at::Tensor& in) {
  const std::int64_t n = in.size(1) / 2;
  const at::Tensor passed = gated(kind, in.narrow(1, 0, n));
  return {{in, passed}, passed.mul(in.narrow(1, n, n))};
}

at::Tensor eager_gate_backward(Activation kind, const std::vector<at::Tensor>& kept, const at::Tensor& dout) {
  const at::Tensor &in = kept[0], &passed = kept[1];
  const std::int64_t n = dout.size(1);
  const at::Tensor gate = in.narrow(1, 0, n), of_passed = dout.mul(in.narrow(1, n, n));
  const at::Tensor out = at::empty_like(in);
  at::Tensor of_gate = out.narrow(1, 0, n), of_up = out.narrow(1, n, n);
  at::mul_out(of_up, dout, passed);
  of_gate.copy_(kind == Activation::kSwiglu ? at::silu_backward(of_passed, gate)
                                            : at::gelu_backward(of_passed, gate, "tanh"));
  return out;
}

}  // namespace

EagerActivation eager_activation(Activation kind, at::Tensor in) {
  return kind == Activation::kGelu ? eager_gelu(std::move(in)) : eager_gate(kind, in);
}

at::Tensor eager_activation_backward(Activation kind, std::vector<at::Tensor> kept, const at::Tensor& dout) {
  if (kind == Activation::kGelu) return eager_gelu_backward(std::move(kept), dout);
  return eager_gate_backward(kind, kept, dout);
}

NormStats eager_norm(const at::Tensor& x, const Norm& p, const at::Tensor& y) {
  const at::Tensor wide = at::empty_like(x);
  const NormStats stats = norm(x, in_fp32(p), wide);
  at::Tensor(y).copy_(wide);
  return stats;
}

void eager_norm_backward(const at::Tensor& dy, const at::Tensor& x, const Norm& p, const NormStats& stats,
                         const at::Tensor& residual, const at::Tensor& dx, const GradOut& dw,
                         const GradOut& db) {
  const Norm wide = in_fp32(p);
  const at::Tensor of_w = at::empty_like(wide.w), of_b = p.rms() ? at::Tensor() : at::empty_like(wide.b);
  const at::Tensor d = dy.to(at::kFloat);
  norm_backward(d, x, wide, stats, {}, d, {of_w, false}, {of_b, false});
  at::Tensor(dx).copy_(d);
  if (residual.defined()) at::Tensor(dx).add_(residual);
  put(dw, of_w.to(dw.grad.scalar_type()));
  if (!p.rms()) put(db, of_b.to(db.grad.scalar_type()));
}

void eager_cross_entropy(const at::Tensor& logits, const Labels& labels, double scale,
                         const at::Tensor& total) {
  const at::Tensor index = (labels.holes ? labels.ids.clamp_min(0) : labels.ids).unsqueeze(1);
  const at::Tensor logs = at::_log_softmax(logits.to(at::kFloat), -1, false);
  const at::Tensor hole = labels.holes ? labels.ids.lt(0).unsqueeze_(1) : at::Tensor();
  at::Tensor found = logs.gather(1, index);
  if (labels.holes) found.masked_fill_(hole, 0.0);
  at::Tensor(total).sub_(found.sum().to(total.scalar_type()));
  at::Tensor picks = at::zeros_like(logs);
  picks.scatter_(1, index, -scale);
  if (labels.holes) picks.masked_fill_(hole, 0.0);
  at::Tensor(logits).copy_(at::_log_softmax_backward_data(picks, logs, -1, at::kFloat));
}

}  // namespace sweep::kernels
