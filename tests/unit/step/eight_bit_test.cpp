// AdamW with moments in eight bits against the published algorithm (Dettmers et al. 2021, arXiv 2110.02861, section 2
// and appendix), written here anew in double arithmetic.
#include "bench_kernels/kernels/eight_bit.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "bench_kernels/optim/optimizer.h"
#include "bench_kernels/shape/optimizer_states.h"

namespace sweep::optim {
namespace {

constexpr std::size_t kBlock = 256;

// bitsandbytes' create_dynamic_map: the means of neighbours of a linspace from 0.1 to 1, for seven powers of ten.
std::vector<double> published_map(bool with_sign) {
  std::vector<double> values{0, 1};
  for (int i = 0; i < 7; ++i) {
    const int items = (1 << (with_sign ? i : i + 1)) + 1;
    for (int k = 0; k + 1 < items; ++k) {
      const auto boundary = [&](int at) { return 0.1 + 0.9 * at / (items - 1); };
      values.push_back(std::pow(10, i - 6) * (boundary(k) + boundary(k + 1)) / 2);
      if (with_sign) values.push_back(-values.back());
    }
  }
  std::sort(values.begin(), values.end());
  return values;
}

TEST(EightBitAdamW, TheDynamicMapsAreThePublishedOnes) {
  for (const bool with_sign : {true, false}) {
    const auto map = kernels::dynamic_map(with_sign);
    const auto published = published_map(with_sign);
    ASSERT_EQ(published.size(), map.size());
    for (std::size_t i = 0; i < map.size(); ++i)
      EXPECT_FLOAT_EQ(map[i], static_cast<float>(published[i])) << i;
  }
}

// A moment of every number, as the block's codes and scale say after each update.
struct Moment {
  std::vector<double> values, map;
  void quantize() {
    for (std::size_t first = 0; first < values.size(); first += kBlock) {
      const std::size_t end = std::min(first + kBlock, values.size());
      double most = 0;
      for (std::size_t i = first; i < end; ++i) most = std::max(most, std::abs(values[i]));
      for (std::size_t i = first; i < end && most > 0; ++i) {
        const auto further = [&](double a, double b) {
          return std::abs(a * most - values[i]) < std::abs(b * most - values[i]);
        };
        values[i] = most * *std::min_element(map.begin(), map.end(), further);
      }
    }
  }
};

struct Reference {
  OptimizerOptions o;
  std::vector<double> parameters;
  Moment mean, square;
  bool quantized;
  Reference(const OptimizerOptions& options, std::vector<double> start)
      : o(options),
        parameters(std::move(start)),
        mean{std::vector<double>(parameters.size()), published_map(true)},
        square{std::vector<double>(parameters.size()), published_map(false)},
        quantized(parameters.size() >= 4096) {}
  void step(const std::vector<double>& grads, int count) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      double &m = mean.values[i], &v = square.values[i];
      m = o.beta1 * m + (1 - o.beta1) * grads[i];
      v = o.beta2 * v + (1 - o.beta2) * grads[i] * grads[i];
      const double m_hat = m / (1 - std::pow(o.beta1, count)), v_hat = v / (1 - std::pow(o.beta2, count));
      parameters[i] -= o.lr * (m_hat / (std::sqrt(v_hat) + o.eps) + o.weight_decay * parameters[i]);
    }
    if (quantized) mean.quantize(), square.quantize();
  }
};

std::vector<double> wide(const at::Tensor& t) {
  const at::Tensor exact = t.to(at::kDouble).contiguous();
  return {exact.const_data_ptr<double>(), exact.const_data_ptr<double>() + exact.numel()};
}

TEST(EightBitAdamW, FollowsThePublishedAlgorithm) {
  const OptimizerOptions options{.lr = 1e-2, .weight_decay = 0.1};
  at::manual_seed(3);
  // Whole blocks, a last one that is not full, and few numbers, which stay in fp32.
  for (const i64 n : {16 * 256, 20 * 256 + 17, 4095, 300}) {
    // Ever other blocks have other magnitudes, so that a block with a neighbour's scale shows.
    const at::Tensor sizes =
        at::pow(10, at::floor_divide(at::arange(n), 256).remainder(4).to(at::kDouble) - 3);
    const at::Tensor start = at::randn({n}, at::kFloat);
    const at::Tensor parameter = start.clone();
    Optimizer updated({parameter}, OptimizerKind::kAdamw8bit, options);
    Reference reference(options, wide(start));
    for (int count = 1; count <= 6; ++count) {
      const at::Tensor grad = (at::randn({n}, at::kDouble) * sizes).to(at::kFloat);
      updated.step({grad});
      reference.step(wide(grad), count);
      const auto got = wide(parameter);
      double worst = 0, sum = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double off = std::abs(got[i] - reference.parameters[i]) / options.lr;
        worst = std::max(worst, off), sum += off;
      }
      // A moment half-way between two codes may take either, which shows in its parameter alone.
      EXPECT_LE(worst, reference.quantized ? 0.3 : 1e-3) << n << " numbers, update " << count;
      EXPECT_LE(sum / static_cast<double>(n), 1e-4) << n << " numbers, update " << count;
    }
    EXPECT_EQ(updated.bytes(), shape::moment_bytes(OptimizerKind::kAdamw8bit, shape::StateTypes{}, n));
    EXPECT_EQ(updated.bytes(), n >= 4096 ? 2 * n + 8 * ((n + 255) / 256) : 8 * n);
  }
}

TEST(EightBitAdamW, UpdatesEveryTypeOfParameter) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf, at::kDouble}) {
    const at::Tensor one = at::ones({5000}, type), all = at::ones({5000}, at::kFloat);
    Optimizer(std::vector<at::Tensor>{one}, OptimizerKind::kAdamw8bit, {.lr = 0.125})
        .step({at::ones({5000}, type)});
    Optimizer(std::vector<at::Tensor>{all}, OptimizerKind::kAdamw8bit, {.lr = 0.125})
        .step({at::ones({5000}, at::kFloat)});
    EXPECT_LE((one.to(at::kFloat) - all).abs().max().item<float>(), type == at::kDouble ? 1e-6f : 4e-3f);
    EXPECT_NEAR(all[0].item<float>(), 0.875, 2e-3);
  }
}

TEST(EightBitAdamW, ANumberThatIsNotFiniteShowsInItsParameterOnly) {
  at::Tensor grad = at::ones({8192}, at::kFloat);
  grad[5000] = std::nanf("");
  const at::Tensor parameter = at::ones({8192}, at::kFloat);
  Optimizer optimizer({parameter}, OptimizerKind::kAdamw8bit, {});
  optimizer.step({grad});
  EXPECT_EQ(parameter.isnan().sum().item<i64>(), 1);
}

}  // namespace
}  // namespace sweep::optim
