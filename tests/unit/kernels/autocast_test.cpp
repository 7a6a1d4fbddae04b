// The operations of autocast.h against autograd graphs of the same operators: values, gradients, and the bytes that each
// keeps from forward to backward.
#include "bench_kernels/kernels/autocast.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "bench_kernels/kernels/counting_allocator.h"

namespace sweep::kernels {
namespace {

struct Below {
  at::NoGradGuard no_grad;
  at::AutoDispatchBelowADInplaceOrView guard;
};

std::int64_t bytes_now() {
  return memory::stats(c10::DeviceType::CPU).current;
}

// Bytes that are there after f beside those before it; what f returns is among them.
template <class F>
std::int64_t kept_by(const F& f) {
  const std::int64_t before = bytes_now();
  const auto held = f();
  return bytes_now() - before;
}

at::Tensor numbers(at::IntArrayRef sizes, at::ScalarType type, double spread = 1) {
  const std::int64_t n = c10::multiply_integers(sizes);
  return at::arange(n, at::kDouble).mul_(0.7391).sin_().mul_(spread).view(sizes).to(type);
}

double relative_distance(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor wide = b.to(at::kDouble);
  return (a.to(at::kDouble) - wide).norm().item<double>() / wide.norm().item<double>();
}

class Autocast : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  static void SetUpTestSuite() { memory::install(c10::DeviceType::CPU); }
  static double rounding() { return GetParam() == at::kHalf ? 1e-3 : 8e-3; }
};

// minGPT's NewGELU as autocast runs it: the power in fp32, the last product cast for the linear layer after it.
at::Tensor new_gelu(const at::Tensor& u) {
  const at::Tensor inner = u.to(at::kFloat).pow(3).mul(0.044715).add(u).mul(std::sqrt(2.0 / M_PI));
  return u.mul(0.5).mul(inner.tanh().add(1)).to(u.scalar_type());
}

// The same under autograd: its graph holds what it saved, and nothing else outlives it.
at::Tensor graph_of(Activation kind, const at::Tensor& leaf) {
  const at::Tensor in = leaf.mul(1);
  if (kind == Activation::kGelu) return new_gelu(in);
  const std::int64_t n = in.size(1) / 2;
  const at::Tensor gate = in.narrow(1, 0, n);
  return (kind == Activation::kSwiglu ? at::silu(gate) : at::gelu(gate, "tanh")).mul(in.narrow(1, n, n));
}

void expect_like_autograd(Activation kind, at::ScalarType type, double rounding) {
  const at::Tensor leaf = numbers({48, 64}, type, 2).requires_grad_();
  const at::Tensor grad = numbers({48, kind == Activation::kGelu ? 64 : 32}, type);
  const std::int64_t saved = kept_by([&] { return graph_of(kind, leaf); });
  const at::Tensor expected = graph_of(kind, leaf);
  expected.backward(grad);
  const at::Tensor copy = leaf.detach().clone();
  const Below below;
  EXPECT_EQ(kept_by([&] { return eager_activation(kind, copy.clone()); }), saved);
  EagerActivation eager = eager_activation(kind, copy.clone());
  EXPECT_TRUE(at::equal(eager.out, expected));
  EXPECT_LT(relative_distance(eager_activation_backward(kind, std::move(eager.kept), grad), leaf.grad()),
            rounding);
}

TEST_P(Autocast, GeluKeepsAndGivesWhatAutogradDoes) {
  expect_like_autograd(Activation::kGelu, GetParam(), rounding());
}

TEST_P(Autocast, GatesKeepAndGiveWhatAutogradDoes) {
  expect_like_autograd(Activation::kSwiglu, GetParam(), rounding());
  expect_like_autograd(Activation::kGeglu, GetParam(), rounding());
}

TEST_P(Autocast, ALayerNormIsComputedInFp32) {
  const at::Tensor x = numbers({48, 64}, GetParam(), 3), dy = numbers({48, 64}, GetParam());
  const at::Tensor w = numbers({64}, GetParam()).add_(1), b = numbers({64}, GetParam());
  const at::Tensor wide = x.to(at::kFloat).requires_grad_(), wide_w = w.to(at::kFloat).requires_grad_();
  const at::Tensor expected = at::layer_norm(wide, {64}, wide_w, b.to(at::kFloat));
  expected.backward(dy.to(at::kFloat));
  const Below below;
  const at::Tensor y = at::empty_like(x), dx = at::empty_like(x), dw = at::empty_like(w),
                   db = at::empty_like(b);
  const NormStats stats = eager_norm(wide, {w, b}, y);
  eager_norm_backward(dy, wide, {w, b}, stats, dy, dx, {dw, false}, {db, false});
  EXPECT_TRUE(at::allclose(y, expected.to(y.scalar_type()), rounding(), rounding()));
  EXPECT_LT(relative_distance(dx, wide.grad().add(dy.to(at::kFloat))), rounding());
  EXPECT_LT(relative_distance(dw, wide_w.grad()), rounding());
  EXPECT_LT(relative_distance(db, dy.to(at::kFloat).sum(0)), rounding());
}

TEST_P(Autocast, TheLossIsThatOfFp32Logits) {
  const at::Tensor logits = numbers({48, 101}, GetParam(), 4);
  at::Tensor labels = at::arange(48, at::kLong).mul_(7).remainder_(101);
  const at::Tensor leaf = logits.to(at::kFloat).requires_grad_();
  const at::Tensor loss = at::cross_entropy_loss(leaf, labels, {}, at::Reduction::Sum);
  loss.mul(0.25).backward();
  const Below below;
  const at::Tensor total = at::zeros({1}, at::kDouble);
  eager_cross_entropy(logits, {labels}, 0.25, total);
  EXPECT_NEAR(total.item<double>(), loss.item<double>(), 1e-3);
  EXPECT_LT(relative_distance(logits, leaf.grad()), rounding());
  const at::Tensor again = numbers({48, 101}, GetParam(), 4);
  labels[5] = -1;
  eager_cross_entropy(again, {labels, true}, 0.25, total);
  EXPECT_EQ(again[5].abs().sum().item<float>(), 0);
}

// Scores in 16 bits, softmax in fp32: both its result and the copy that the product reads are kept.
TEST_P(Autocast, AttentionKeepsTheSoftmaxTwice) {
  AttentionShape shape{2, 16, 4, 4, 8, AttentionKernel::kMath, {}};
  const at::Tensor qkv = numbers({32, 96}, GetParam()), dout = numbers({32, 32}, GetParam());
  const Below below;
  const at::Tensor plain_dqkv = at::empty_like(qkv), dqkv = at::empty_like(qkv);
  const AttentionState plain = attention(qkv, shape, {});
  attention_backward(dout, qkv, shape, plain, plain_dqkv);
  shape.autocast = true;
  const AttentionState eager = attention(qkv, shape, {});
  attention_backward(dout, qkv, shape, eager, dqkv);
  EXPECT_EQ(eager.saved.scalar_type(), at::kFloat);
  EXPECT_EQ(eager.narrow.scalar_type(), GetParam());
  EXPECT_EQ(eager.saved.numel(), 2 * 4 * 16 * 16);
  EXPECT_LT(relative_distance(eager.out, plain.out), 2 * rounding());
  EXPECT_LT(relative_distance(dqkv, plain_dqkv), 4 * rounding());
}

INSTANTIATE_TEST_SUITE_P(Types, Autocast, ::testing::Values(at::kBFloat16, at::kHalf),
                         [](const auto& one) { return std::string(at::toString(one.param)); });

}  // namespace
}  // namespace sweep::kernels
