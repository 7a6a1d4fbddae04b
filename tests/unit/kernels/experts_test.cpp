// Operations on the rows of experts: grouped products and the weighted sum of a token's choices.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "bench_kernels/kernels/grouped.h"
#include "bench_kernels/kernels/moe.h"

namespace sweep::kernels {
namespace {

constexpr std::int64_t kExperts = 3, kInputs = 16, kOutputs = 24;

double apart(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

// An expert without rows among them. The library's operator, which GPUs have a kernel for, gives the same.
TEST(Grouped, ProductsAreThoseOfEachExpert) {
  Groups groups{{5, 0, 7}, at::tensor({5, 5, 12}, at::kInt), false};
  const at::Tensor in = at::randn({12, kInputs}), dout = at::randn({12, kOutputs});
  const at::Tensor weight = at::randn({kExperts * kOutputs, kInputs});
  const at::Tensor out = grouped_linear(in, weight, groups);
  const at::Tensor din = grouped_backward_input(dout, weight, groups);
  const at::Tensor dw = at::ones_like(weight);
  grouped_backward_weight(dout, in, groups, {dw, true});
  std::int64_t begin = 0;
  for (std::int64_t e = 0; e < kExperts; ++e) {
    const std::int64_t rows = groups.known[static_cast<std::size_t>(e)];
    const at::Tensor w = weight.narrow(0, e * kOutputs, kOutputs), x = in.narrow(0, begin, rows),
                     g = dout.narrow(0, begin, rows);
    if (rows > 0) {
      EXPECT_LE(apart(out.narrow(0, begin, rows), x.mm(w.t())), 1e-5);
      EXPECT_LE(apart(din.narrow(0, begin, rows), g.mm(w)), 1e-5);
    }
    EXPECT_LE(apart(dw.narrow(0, e * kOutputs, kOutputs), g.t().mm(x) + 1), 1e-5);
    begin += rows;
  }
  groups.at_once = true;
  EXPECT_LE(apart(grouped_linear(in, weight, groups), out), 1e-5);
  EXPECT_LE(apart(grouped_backward_input(dout, weight, groups), din), 1e-5);
}

// Four experts in two groups. By the best expert the first group wins, by the two best together the second.
TEST(Gate, GroupsAreJudgedByTheirBestExpertOrByTwoAndTheBiasOnlyChooses) {
  const at::Tensor probs = at::tensor({0.6, 0.1, 0.5, 0.4}, at::kDouble).view({1, 4});
  const at::Tensor experts = at::empty({1, 2}, at::kLong), weights = at::empty({1, 2}, at::kDouble);
  const auto chosen = [&](const Gate& gate, const at::Tensor& bias = {}) {
    choose_experts(probs, experts, gate, bias);
    router_weights(probs, experts, weights, gate);
    return std::vector<std::int64_t>{experts[0][0].item<std::int64_t>(), experts[0][1].item<std::int64_t>()};
  };
  using Pair = std::vector<std::int64_t>;
  EXPECT_EQ(chosen({}), (Pair{0, 2}));
  EXPECT_DOUBLE_EQ(weights[0][0].item<double>(), 0.6 / 1.1);
  EXPECT_EQ(chosen({false, false, 3, 2, 1}), (Pair{0, 1}));
  EXPECT_DOUBLE_EQ(weights[0][1].item<double>(), 0.3) << "not normalised, three times the probability";
  EXPECT_EQ(chosen({true, true, 2, 2, 1}), (Pair{2, 3}));
  EXPECT_DOUBLE_EQ(weights[0][0].item<double>(), 2 * 0.5 / 0.9);
  EXPECT_EQ(chosen({true, true, 1, 0, 0}, at::tensor({0.0, 0.0, 0.0, 0.3}, at::kDouble)), (Pair{3, 0}));
  EXPECT_DOUBLE_EQ(weights[0][0].item<double>(), 0.4) << "of the probabilities, which add up to 1";
}

// In bf16 a token's rows are summed in fp32 and rounded once; adding them by index would round each time.
TEST(Experts, ATokensChoicesAreSummedBeforeTheyAreRounded) {
  constexpr std::int64_t kTokens = 7, kChoices = 8, kWidth = 32;
  const at::Tensor rows = at::randn({kTokens * kChoices, kWidth}).to(at::kBFloat16);
  const at::Tensor weights = at::rand({kTokens, kChoices}),
                   base = at::randn({kTokens, kWidth}).to(at::kBFloat16);
  const at::Tensor exact = rows.to(at::kDouble).view({kTokens, kChoices, kWidth});
  const auto rounded = [](const at::Tensor& t) { return t.to(at::kBFloat16).to(at::kDouble); };
  const auto near = [&](const at::Tensor& found, const at::Tensor& wanted) {
    // a unit in the last place of bf16, just above a power of two, and the rounding of the sum in fp32
    const at::Tensor bound = wanted.abs().mul(1.0 / 128).add(1e-5);
    EXPECT_TRUE((found.to(at::kDouble) - rounded(wanted)).abs().le(bound).all().item<bool>());
  };
  const at::Tensor sum = at::empty_like(base), plain = at::empty_like(base),
                   dweights = at::empty_like(weights);
  weighted_sum(rows, weights, base, sum);
  near(sum, (exact * weights.unsqueeze(2)).sum(1) + base);
  sum_choices(rows, plain);
  near(plain, exact.sum(1));
  weight_gradients(base, rows, dweights);
  EXPECT_LE(apart(dweights, (exact * base.unsqueeze(1)).sum(2)), 1e-4);
}

TEST(Experts, RowsThatNoChoiceGivesAreZero) {
  const at::Tensor rows = at::ones({2, 3}), to = at::full({4, 3}, 9.0);
  place_rows(rows, at::tensor({3, 1}, at::kLong), to);
  EXPECT_TRUE(to.sum(1).equal(at::tensor({0.0f, 3.0f, 0.0f, 3.0f})));
  const at::Tensor counts = at::full({4}, 7, at::kLong);
  count_choices(at::tensor({2, 0, 2, 3}, at::kLong).view({2, 2}), counts);
  EXPECT_TRUE(counts.equal(at::tensor({1, 0, 2, 1}, at::kLong)));
}

}  // namespace
}  // namespace sweep::kernels
