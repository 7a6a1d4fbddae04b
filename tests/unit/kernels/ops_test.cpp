// Every fused loop against its plain equivalent, in each type; and on meta tensors nothing is touched.
#include "bench_kernels/kernels/ops.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "bench_kernels/kernels/attention_heads.h"
#include "bench_kernels/kernels/rows.h"

namespace sweep::kernels {
namespace {

struct PlainPath {
  PlainPath() { set_path(Path::kPlain); }
  ~PlainPath() { set_path(Path::kFused); }
};

class Ops : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override { at::manual_seed(7); }
  at::Tensor random(at::IntArrayRef shape) const { return at::randn(shape, at::kDouble).to(GetParam()); }
  double tolerance() const {
    return GetParam() == at::kDouble ? 1e-12 : GetParam() == at::kFloat ? 2e-5 : 4e-2;
  }
  void expect_same(const at::Tensor& a, const at::Tensor& b) const {
    EXPECT_LE((a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>(),
              tolerance() * (1 + b.abs().max().item<double>()));
  }
};

TEST_P(Ops, NormsForwardAndBackward) {
  for (const double plus : {-1.0, 0.0, 1.0}) {
    const bool rms = plus >= 0;
    const at::Tensor x = random({37, 50}), w = random({50}), b = rms ? at::Tensor() : random({50}),
                     dy = random({37, 50});
    const at::Tensor residual = random({37, 50});
    const auto run = [&] {
      const Norm norm_layer{w, b, 1e-5, rms ? plus : 0};
      const at::Tensor y = at::empty_like(x), dx = at::empty_like(x), dw = at::ones_like(w),
                       db = at::ones_like(w);
      const NormStats stats = norm(x, norm_layer, y);
      norm_backward(dy, x, norm_layer, stats, residual, dx, {dw, true}, {db, false});
      return std::vector<at::Tensor>{y, dx, dw, db};
    };
    const auto fused = run();
    const PlainPath plain;
    const auto expected = run();
    for (std::size_t i = 0; i < fused.size(); ++i) expect_same(fused[i], expected[i]);
  }
}

// Half a step of bf16 at 1 would be lost in a sum of that type. Other orders of a row's squares round a few numbers otherwise.
TEST(Norms, WhatIsAddedToWeightsIsNotRoundedToTheirType) {
  at::manual_seed(7);
  const at::Tensor x = at::randn({64, 256}).to(at::kBFloat16), w = at::full({256}, 0.0035, at::kBFloat16);
  const at::Tensor wide = x.to(at::kDouble), hat = wide * (wide.square().mean(-1, true) + 1e-6).rsqrt();
  const at::Tensor expected = (hat * (1 + w.to(at::kDouble))).to(at::kBFloat16);
  ASSERT_LT((hat.to(at::kBFloat16) == expected).sum().item<std::int64_t>(),
            0.8 * static_cast<double>(x.numel()));
  for (const Path by : {Path::kFused, Path::kPlain}) {
    set_path(by);
    const at::Tensor y = at::empty_like(x);
    norm(x, {w, {}, 1e-6, 1}, y);
    EXPECT_GT((y == expected).sum().item<std::int64_t>(), 0.99 * static_cast<double>(x.numel()));
  }
  set_path(Path::kFused);
}

// 64.25 lies between two numbers of bf16.
TEST(Products, SumsOfFactorsOf16BitsInFp32AreNotRounded) {
  const at::Tensor a = at::tensor({64.0, 0.25}).view({1, 2}).to(at::kBFloat16), out = at::empty({1, 1});
  scaled_product(a, at::ones({2, 1}, at::kBFloat16), 1, out, false);
  EXPECT_EQ(out.item<float>(), 64.25F);
  scaled_product(a, at::ones({2, 1}, at::kBFloat16), 2, out, true);
  EXPECT_EQ(out.item<float>(), 3 * 64.25F);
}

// Rows of two blocks, each a part of wider strides, as pieces of an overlapped exchange stand.
TEST_P(Ops, ProductsOfBlocksAreThoseOfTheirRows) {
  const PlainPath plain;
  const at::Tensor in = random({2, 5, 24}), weight = random({16, 24}), bias = random({16});
  const at::Tensor dout = random({2, 9, 16}).narrow(1, 3, 5);
  ASSERT_TRUE(takes_blocks(in));
  const auto rows = [](const at::Tensor& blocks) { return blocks.reshape({10, -1}).contiguous(); };
  for (const bool with_bias : {false, true}) {
    const Weight w{weight, with_bias ? bias : at::Tensor()};
    const at::Tensor wide = at::zeros({2, 9, 16}, in.options()), out = wide.narrow(1, 3, 5),
                     expected = at::empty({10, 16}, in.options());
    linear(in, w, {}, out);
    linear(rows(in), w, {}, expected);
    expect_same(rows(out), expected);
    EXPECT_EQ(wide.narrow(1, 0, 3).abs().max().item<double>(), 0) << "the rows before were written";
    EXPECT_EQ(wide.narrow(1, 8, 1).abs().max().item<double>(), 0) << "the row behind was written";
  }
  const at::Tensor din = at::empty_like(in), expected = at::empty({10, 24}, in.options());
  linear_backward_input(dout, {weight, {}}, din);
  linear_backward_input(rows(dout), {weight, {}}, expected);
  expect_same(rows(din), expected);
  const at::Tensor dw = at::ones_like(weight), expected_dw = at::ones_like(weight);
  linear_backward_weight(dout, in, false, {dw, true});
  linear_backward_weight(rows(dout), rows(in), false, {expected_dw, true});
  expect_same(dw, expected_dw);
  const at::Tensor sum = random({2, 5, 24}), expected_sum = rows(sum).clone();
  scaled_product(dout, weight, 0.5, sum, true);
  scaled_product(rows(dout), weight, 0.5, expected_sum, true);
  expect_same(rows(sum), expected_sum);
}

TEST_P(Ops, RopeTurnsAndTurnsBack) {
  const at::Tensor rows = random({12, 40}),
                   angles = at::rand({6, 4}, at::kDouble).to(accumulate_type(GetParam()));
  const at::Tensor c = angles.cos(), s = angles.sin();
  const at::Tensor fused = rows.clone(), plain = rows.clone();
  rope(fused, 3, 8, c, s, false);
  {
    const PlainPath path;
    rope(plain, 3, 8, c, s, false);
  }
  expect_same(fused, plain);
  EXPECT_TRUE(fused.narrow(1, 24, 16).equal(rows.narrow(1, 24, 16)))
      << "rows beyond the heads are not positions";
  rope(fused, 3, 8, c, s, true);
  expect_same(fused, rows);
}

TEST_P(Ops, ActivationsForwardAndBackward) {
  for (const Activation kind : {Activation::kSwiglu, Activation::kGeglu, Activation::kGelu,
                                Activation::kGeluExact, Activation::kClampedSwiglu, Activation::kRelu}) {
    const bool gated =
        kind != Activation::kGelu && kind != Activation::kGeluExact && kind != Activation::kRelu;
    const at::Tensor in = random({9, gated ? 66 : 33}), grad = random({9, 33});
    if (kind == Activation::kClampedSwiglu) in.mul_(5);  // beyond both limits too
    const auto run = [&] {
      const at::Tensor i = in.clone(), g = grad.clone(), out = at::empty_like(grad);
      activation(kind, i, out);
      activation_backward(kind, i, g);
      return std::vector<at::Tensor>{out, i, g};
    };
    const auto fused = run();
    expect_same(fused[2], fused[0]);
    const PlainPath plain;
    const auto expected = run();
    for (std::size_t i = 0; i < 3; ++i) expect_same(fused[i], expected[i]);
  }
}

TEST_P(Ops, CrossEntropyForwardAndBackward) {
  const at::Tensor logits = random({21, 101}).mul_(5), labels = at::randint(101, {21}, at::kLong);
  const auto run = [&] {
    const at::Tensor l = logits.clone(), total = at::ones({1}, at::kDouble);
    cross_entropy(l, labels, 0.25, total);
    return std::vector<at::Tensor>{total, l};
  };
  const auto fused = run();
  const PlainPath plain;
  const auto expected = run();
  for (std::size_t i = 0; i < 2; ++i) expect_same(fused[i], expected[i]);
}

TEST_P(Ops, EmbeddingAddsRepeatedTokens) {
  const at::Tensor table = random({11, 20}), positions = random({6, 20}),
                   tokens = at::randint(3, {12}, at::kLong);
  const at::Tensor grad = random({12, 20});
  const auto run = [&] {
    const at::Tensor out = at::empty_like(grad), dtable = at::ones_like(table),
                     dpositions = at::ones_like(positions);
    embed(table, positions, {tokens, 4}, out);
    embed_backward(grad, {tokens, 4}, {dtable, true}, {dpositions, false});
    return std::vector<at::Tensor>{out, dtable, dpositions};
  };
  const auto fused = run();
  const PlainPath plain;
  const auto expected = run();
  for (std::size_t i = 0; i < 3; ++i) expect_same(fused[i], expected[i]);
}

TEST_P(Ops, AttentionKernelsAgreeAlsoWithGroupsAndWindow) {
  if (GetParam() == at::kBFloat16) return;  // the two round at different places
  for (const bool grouped : {false, true}) {
    for (const auto& window : {std::optional<std::int64_t>(), std::optional<std::int64_t>(5)}) {
      AttentionShape shape{2, 19, 4, grouped ? 2 : 4, 16, AttentionKernel::kFlash, window};
      const at::Tensor qkv = random({38, (4 + 2 * shape.kv_heads) * 16}), dout = random({38, 64});
      const auto run = [&](bool flash) {
        shape.kernel = flash ? AttentionKernel::kFlash : AttentionKernel::kMath;
        const at::Tensor dqkv = at::empty_like(qkv);
        const AttentionState state = attention(qkv, shape, window_mask(shape, qkv.options()));
        attention_backward(dout, qkv, shape, state, dqkv);
        return std::vector<at::Tensor>{state.out, dqkv};
      };
      const auto flash = run(true), math = run(false);
      expect_same(flash[0], math[0]);
      expect_same(flash[1], math[1]);
      const PlainPath plain;
      const auto expected = run(false);
      expect_same(math[0], expected[0]);
      expect_same(math[1], expected[1]);
    }
  }
}

// Without a mask, of a sequence's own keys and of another sequence's, shorter and longer.
TEST_P(Ops, AttentionKernelsAgreeOnAllKeys) {
  if (GetParam() == at::kBFloat16) return;
  for (const std::int64_t keys : {0, 7, 30}) {
    AttentionShape shape{2, 19, 4, 4, 16, AttentionKernel::kFlash, {}, nullptr, false, false, keys};
    const at::Tensor rows = keys > 0 ? random({2 * (19 + 2 * keys) * 64}) : random({38, 192}),
                     dout = random({38, 64});
    const auto run = [&](bool flash) {
      shape.kernel = flash ? AttentionKernel::kFlash : AttentionKernel::kMath;
      const at::Tensor drows = at::empty_like(rows);
      const AttentionState state = attention(rows, shape, {});
      attention_backward(dout, rows, shape, state, drows);
      return std::vector<at::Tensor>{state.out, drows};
    };
    const auto flash = run(true), math = run(false);
    const PlainPath plain;
    const auto expected = run(false);
    for (const std::size_t i : {0, 1}) expect_same(flash[i], expected[i]), expect_same(math[i], expected[i]);
    const Heads h = split_heads(rows, shape);
    const auto first = [](const at::Tensor& heads) { return heads.transpose(1, 2).to(at::kDouble); };
    const at::Tensor weights = at::softmax(first(h.q).matmul(first(h.k).transpose(2, 3)) / 4, -1);
    expect_same(flash[0], weights.matmul(first(h.v)).transpose(1, 2).reshape({38, 64}));
  }
}

TEST_P(Ops, LinearWithBiasResidualAndBothLayouts) {
  for (const bool transposed : {false, true}) {
    const at::Tensor in = random({9, 7}), w = transposed ? random({7, 5}) : random({5, 7}),
                     bias = random({5}), res = random({9, 5});
    const at::Tensor matrix = transposed ? w : w.t();
    const at::Tensor out = at::empty({9, 5}, in.options()), din = at::empty_like(in), dw = at::ones_like(w),
                     db = at::ones_like(bias);
    linear(in, {w, bias, transposed}, res, out);
    const auto wide = [](const at::Tensor& t) { return t.to(at::kDouble); };
    expect_same(out, wide(in).mm(wide(matrix)) + wide(bias) + wide(res));
    linear_backward_input(res, {w, bias, transposed}, din);
    expect_same(din, wide(res).mm(wide(matrix).t()));
    linear_backward_weight(res, in, transposed, {dw, true});
    const at::Tensor expected = transposed ? wide(in).t().mm(wide(res)) : wide(res).t().mm(wide(in));
    expect_same(dw, expected + 1);
    bias_backward(res, {db, true});
    expect_same(db, wide(res).sum(0) + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Ops, ::testing::Values(at::kFloat, at::kBFloat16, at::kDouble),
                         [](const auto& info) { return std::string(c10::toString(info.param)); });

TEST(RowKernels, WideAndPlainInstructionSetsAgree) {
  const at::Tensor x = at::randn({5, 333}), wide = at::empty({5, 166}), narrow = at::empty({5, 166});
  const at::Tensor even = x.narrow(1, 0, 332).contiguous();
  row_kernels<float>(true).activations[0].forward(even.const_data_ptr<float>(),
                                                  wide.mutable_data_ptr<float>(), 0, 5, 166);
  row_kernels<float>(false).activations[0].forward(even.const_data_ptr<float>(),
                                                   narrow.mutable_data_ptr<float>(), 0, 5, 166);
  EXPECT_LE((wide - narrow).abs().max().item<float>(), 1e-5f);
}

TEST(RowKernels, UniformValuesDependOnKeyAndIndexOnly) {
  std::vector<float> all(1000), part(400), other(1000);
  row_kernels<float>().fill_uniform(all.data(), 0, 1000, mix64(1), 1.0f);
  row_kernels<float>().fill_uniform(part.data(), 600, 400, mix64(1), 1.0f);
  row_kernels<float>().fill_uniform(other.data(), 0, 1000, mix64(2), 1.0f);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + 600));
  EXPECT_NE(all, other);
  double sum = 0, squares = 0;
  for (const float v : all) {
    EXPECT_LE(std::abs(v), 1.0f);
    sum += v;
    squares += v * v;
  }
  EXPECT_NEAR(sum / 1000, 0, 0.06);
  EXPECT_NEAR(squares / 1000, 1.0 / 3, 0.04);
}

TEST(RowKernels, NotANumberReachesTheLoss) {
  at::Tensor logits = at::zeros({1, 64}), total = at::zeros({1}, at::kDouble);
  logits.index_put_({at::tensor({0}), at::tensor({40})}, at::tensor(NAN));
  cross_entropy(logits, at::zeros({1}, at::kLong), 1, total);
  EXPECT_TRUE(std::isnan(total.item<double>()));
}

}  // namespace
}  // namespace sweep::kernels
