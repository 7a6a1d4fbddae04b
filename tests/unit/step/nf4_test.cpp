// NF4 with double quantization against the published algorithm (Dettmers et al. 2023, arXiv 2305.14314, section 3),
// written here anew: each number against every value, in plain loops. tests/parity/nf4_check.py has bitsandbytes beside it.
#include "bench_kernels/kernels/nf4.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "bench_kernels/kernels/eight_bit.h"
#include "bench_kernels/shape/quantized_base.h"

namespace sweep::kernels {
namespace {

using shape::Nf4Extent;

// The map as the published code computes it, in fp32 by the library.
std::vector<float> map_of_fractions() {
  std::vector<float> values{0, 1};
  for (int i = 0; i < 7; ++i) {
    const at::Tensor ends = at::linspace(0.1, 1, (1 << i) + 1, at::kFloat);
    const at::Tensor means =
        ends.slice(0, 0, -1).add(ends.slice(0, 1)).div(2.0).mul(std::pow(10.0, i - 6)).contiguous();
    for (std::int64_t k = 0; k < means.numel(); ++k)
      values.push_back(means.const_data_ptr<float>()[k]), values.push_back(-values.back());
  }
  std::sort(values.begin(), values.end());
  return values;
}

// Quantiles of N(0, 1) as the paper's appendix makes the type: 8 steps below zero, 9 above, from the offset on, scaled to 1.
const std::vector<float>& normal_floats() {
  static const std::vector<float> values = [] {
    const at::Tensor maps = nf4_maps(at::kFloat);
    const float* all = maps.const_data_ptr<float>() + 256;
    return std::vector<float>(all, all + 16);
  }();
  return values;
}

int nearest_of(const std::vector<float>& values, float x) {
  int best = 0;
  for (int i = 1; i < static_cast<int>(values.size()); ++i)
    if (std::fabs(values[static_cast<std::size_t>(i)] - x) <
        std::fabs(values[static_cast<std::size_t>(best)] - x))
      best = i;
  return best;
}

std::vector<float> floats(const at::Tensor& t) {
  const at::Tensor flat = t.to(at::kFloat).contiguous();
  return {flat.const_data_ptr<float>(), flat.const_data_ptr<float>() + flat.numel()};
}

Nf4 quantized(const at::Tensor& weights) {
  const std::int64_t n = weights.numel();
  const Nf4Extent e{n, n};
  Nf4 q{at::empty({n / 2}, at::kByte),
        at::empty({e.blocks()}, at::kByte),
        at::empty({e.scales()}, at::kFloat),
        at::empty({1}, at::kFloat),
        {{1, e.blocks(), 0, 0, 0, 0}}};
  const at::Tensor maps = nf4_maps(at::kFloat), largest = at::empty({e.blocks()}, at::kFloat);
  nf4_quantize(weights, maps, q.codes, largest);
  nf4_quantize_scales(largest, maps, q.scale_codes, q.scales, q.offset);
  return q;
}

at::Tensor dequantized(const Nf4& q, at::ScalarType type) {
  const at::Tensor out = at::empty({q.codes.numel() * 2}, type);
  nf4_dequantize(q, nf4_maps(at::kFloat), out);
  return out;
}

at::Tensor drawn(std::int64_t n, at::ScalarType type) {
  at::manual_seed(7);
  // Blocks of other magnitudes, one of zeros, and numbers in the middle of two values.
  const at::Tensor sizes = at::rand({n / 64, 1}).mul_(0.05);
  at::Tensor w = at::randn({n / 64, 64}).mul_(sizes);
  w[0].zero_();
  return w.view({-1}).to(type);
}

TEST(Nf4, TheMapOfEightBitsIsThePublishedOneBitByBit) {
  const std::vector<float> published = map_of_fractions();
  const auto map = dynamic_map(true);
  for (std::size_t i = 0; i < map.size(); ++i) EXPECT_EQ(map[i], published[i]) << i;
}

// The type's values are the middles of equal parts of the normal distribution (appendix E): 8 of the lower half, 9 of the
// upper, zero in both.
TEST(Nf4, TheTypeHasTheQuantilesOfTheNormalDistribution) {
  const double offset = 0.9677083;
  const auto quantile = [](double p) {
    return at::special_ndtri(at::scalar_tensor(p, at::kDouble)).item<double>();
  };
  std::vector<double> want{0};
  for (int i = 0; i < 8; ++i) want.push_back(quantile(offset + (0.5 - offset) * i / 8));
  for (int i = 0; i < 7; ++i) want.push_back(-quantile(offset + (0.5 - offset) * i / 7));
  std::sort(want.begin(), want.end());
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(normal_floats()[i], want[i] / quantile(offset), 1e-6) << i;
}

TEST(Nf4, CodesAndBothScalesAreThoseOfThePublishedAlgorithm) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf})
    for (const std::int64_t n : {64, 64 * 256, 64 * 700}) {
      const at::Tensor weights = drawn(n, type);
      const Nf4 q = quantized(weights);
      const std::vector<float> w = floats(weights);
      std::vector<float> largest;
      for (std::size_t block = 0; block < w.size() / 64; ++block) {
        float most = 0;
        for (std::size_t i = 0; i < 64; ++i) most = std::max(most, std::fabs(w[block * 64 + i]));
        largest.push_back(most);
        const float scale = 1 / std::max(most, 1e-38F);
        for (std::size_t i = 0; i < 64; i += 2) {
          const int first = nearest_of(normal_floats(), w[block * 64 + i] * scale);
          const int second = nearest_of(normal_floats(), w[block * 64 + i + 1] * scale);
          ASSERT_EQ(q.codes.const_data_ptr<std::uint8_t>()[block * 32 + i / 2], first * 16 + second)
              << "block " << block << " number " << i;
        }
      }
      const float offset = at::from_blob(largest.data(), {n / 64}, at::kFloat).mean().item<float>();
      EXPECT_EQ(q.offset.item<float>(), offset);
      const std::vector<float> map = map_of_fractions();
      for (std::size_t first = 0; first < largest.size(); first += 256) {
        float most = 0;
        const std::size_t end = std::min(first + 256, largest.size());
        for (std::size_t i = first; i < end; ++i) most = std::max(most, std::fabs(largest[i] - offset));
        EXPECT_EQ(floats(q.scales)[first / 256], most);
        for (std::size_t i = first; i < end; ++i)
          ASSERT_EQ(q.scale_codes.const_data_ptr<std::uint8_t>()[i],
                    nearest_of(map, (largest[i] - offset) * (1 / std::max(most, 1e-38F))))
              << "block " << i;
      }
    }
}

TEST(Nf4, WeightsOfCodesAreTheProductOfTheThreeInEveryType) {
  const at::Tensor weights = drawn(64 * 300, at::kFloat);
  const Nf4 q = quantized(weights);
  const std::vector<float> map = map_of_fractions();
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    std::vector<float> want;
    for (std::int64_t i = 0; i < weights.numel(); ++i) {
      const int byte = q.codes.const_data_ptr<std::uint8_t>()[i / 2],
                code = i % 2 == 0 ? byte >> 4 : byte & 15;
      const float product = map[q.scale_codes.const_data_ptr<std::uint8_t>()[i / 64]] *
                            floats(q.scales)[static_cast<std::size_t>(i / 64 / 256)];
      want.push_back(normal_floats()[static_cast<std::size_t>(code)] * (product + q.offset.item<float>()));
    }
    const at::Tensor expected = at::from_blob(want.data(), {weights.numel()}, at::kFloat).to(type);
    EXPECT_TRUE(dequantized(q, type).equal(expected)) << type;
    // Half the largest distance of two values, and what the codes of 8 bits leave of the largest magnitude.
    const at::Tensor off = (dequantized(q, type).to(at::kFloat) - weights).view({-1, 64}).abs().amax(1);
    EXPECT_LT((off - weights.view({-1, 64}).abs().amax(1).mul(0.18)).max().item<float>(), 1e-3);
  }
}

TEST(Nf4, WhatWasQuantizedKeepsItsCodes) {
  const Nf4 q = quantized(drawn(64 * 512, at::kFloat)), again = quantized(dequantized(q, at::kFloat));
  const std::vector<float> w = floats(dequantized(q, at::kFloat));
  EXPECT_TRUE(
      again.codes.narrow(0, 32, again.codes.numel() - 32).equal(q.codes.narrow(0, 32, q.codes.numel() - 32)));
}

// Columns 128 to 191 of rows of 256 numbers, and rows 3 to 6 of the same tensor.
TEST(Nf4, APartOfATensorHasTheWeightsOfTheWhole) {
  const at::Tensor weights = drawn(64 * 4 * 300, at::kFloat);
  const Nf4 q = quantized(weights);
  const at::Tensor whole = dequantized(q, at::kFloat).view({300, 256});
  const at::Tensor codes = q.codes.view({300, 4, 32}), scale_codes = q.scale_codes.view({300, 4});
  const Nf4 columns{codes.select(1, 2).contiguous().view({-1}),
                    scale_codes.select(1, 2).contiguous(),
                    q.scales,
                    q.offset,
                    {{300, 1, 0, 1, 2, 4}}};
  EXPECT_TRUE(dequantized(columns, at::kFloat).equal(whole.narrow(1, 128, 64).contiguous().view({-1})));
  const Nf4 rows{codes.narrow(0, 103, 4).contiguous().view({-1}),
                 scale_codes.narrow(0, 103, 4).contiguous().view({-1}),
                 q.scales,
                 q.offset,
                 {{1, 16, 0, 0, 412, 0}}};
  EXPECT_TRUE(dequantized(rows, at::kFloat).equal(whole.narrow(0, 103, 4).contiguous().view({-1})));
}

TEST(Nf4, BytesAreFourBitsAndThePublishedShareOfScales) {
  const Nf4Extent e{4096 * 4096, 4096 * 4096};
  EXPECT_EQ(e.blocks(), 262'144);
  EXPECT_EQ(e.scales(), 1024);
  EXPECT_EQ(e.offset_at(), 4096 * 4096 / 2 + 262'144 + 4 * 1024);
  EXPECT_EQ(e.bytes(), e.offset_at() + 64);
  // 0.127 bits of a parameter for its scales (section 3).
  EXPECT_NEAR(8.0 * static_cast<double>(e.bytes()) / (4096.0 * 4096) - 4, 0.127, 1e-3);
}

}  // namespace
}  // namespace sweep::kernels
