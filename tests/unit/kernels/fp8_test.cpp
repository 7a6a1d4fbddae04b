// Products on fp8 units, as the library computes them on CPU, against their arithmetic written out.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "bench_kernels/kernels/ops.h"

namespace sweep::kernels {
namespace {

// The values that the type keeps of t, with the least power of two as the scale that brings the largest into
// range.
at::Tensor kept(const at::Tensor& t, at::ScalarType type, double largest) {
  const double amax = t.abs().max().item<double>();
  const double scale = std::exp2(std::ceil(std::log2(amax / largest)));
  return t.div(scale).to(type).to(at::kFloat).mul(scale);
}
at::Tensor e4m3(const at::Tensor& t) {
  return kept(t, at::kFloat8_e4m3fn, 448);
}
at::Tensor e5m2(const at::Tensor& t) {
  return kept(t, at::kFloat8_e5m2, 57344);
}
double distance(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

struct Fp8 : ::testing::Test {
  at::Tensor in = at::randn({32, 48}), w = at::randn({16, 48}) * 0.02, dout = at::randn({32, 16}) * 1e-6;
};

TEST_F(Fp8, ForwardRoundsBothFactorsToE4m3) {
  const at::Tensor bias = at::randn({16}), residual = at::randn({32, 16}), out = at::empty({32, 16});
  linear(in, {w, {}, false, true}, {}, out);
  EXPECT_LT(distance(out, e4m3(in).mm(e4m3(w).t())), 1e-6);
  const double rounding = distance(out, in.mm(w.t()));
  EXPECT_GT(rounding, 1e-3) << "nothing was rounded";
  EXPECT_LT(rounding, 0.06) << "three bits of mantissa";
  const at::Tensor whole = at::empty({32, 16});
  linear(in, {w, bias, false, true}, residual, whole);
  EXPECT_LT(distance(whole, out + bias + residual), 1e-6);
}

TEST_F(Fp8, GradientsAreRoundedToE5m2) {
  const at::Tensor din = at::empty({32, 48}), dw = at::ones({16, 48});
  linear_backward_input(dout, {w, {}, false, true}, din);
  EXPECT_LT(distance(din, e5m2(dout).mm(e4m3(w))), 1e-6);
  linear_backward_weight(dout, in, false, {dw, false}, true);
  const at::Tensor expected = e5m2(dout).t().mm(e4m3(in));
  EXPECT_LT(distance(dw, expected), 1e-6);
  linear_backward_weight(dout, in, false, {dw, true}, true);
  EXPECT_LT(distance(dw, 2 * expected), 1e-6);
}

TEST_F(Fp8, TransposedWeightsGiveTheSame) {
  const at::Tensor wt = w.t().contiguous(), a = at::empty({32, 16}), b = at::empty({32, 16});
  linear(in, {w, {}, false, true}, {}, a);
  linear(in, {wt, {}, true, true}, {}, b);
  EXPECT_TRUE(a.equal(b));
  const at::Tensor dw = at::empty({16, 48}), dwt = at::empty({48, 16});
  linear_backward_weight(dout, in, false, {dw, false}, true);
  linear_backward_weight(dout, in, true, {dwt, false}, true);
  EXPECT_LT(distance(dwt.t(), dw), 1e-6);
  const at::Tensor din = at::empty({32, 48}), dint = at::empty({32, 48});
  linear_backward_input(dout, {w, {}, false, true}, din);
  linear_backward_input(dout, {wt, {}, true, true}, dint);
  EXPECT_TRUE(din.equal(dint));
}

TEST_F(Fp8, TheScaleFollowsTheTensor) {
  const at::Tensor small = at::empty({32, 48}), large = at::empty({32, 48}), none = at::ones({32, 48});
  linear_backward_input(dout, {w, {}, false, true}, small);
  linear_backward_input(dout * 0x1p30, {w, {}, false, true}, large);
  EXPECT_TRUE(large.equal(small * 0x1p30)) << "gradients below what e5m2 has, and above";
  linear_backward_input(at::zeros({32, 16}), {w, {}, false, true}, none);
  EXPECT_EQ(none.abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace sweep::kernels
