// The cross-entropy by the fused kernels, whole and over two shares of the vocabulary, beside double arithmetic.
#pragma once
#include "tests/device/cases.h"

namespace device_test {

// Row r's label; each fourth row has none.
inline Index label_of(Index r, Index entries) {
  return r % 4 == 3 ? -100 : (7 * r + 2) % entries;
}

// Rows of logits in double: log-sum-exps of all entries and of those from `first` on, the label's logit in each, the
// gradients of all logits, and the sum of the losses.
struct LossReference {
  std::vector<Index> labels;
  std::vector<double> sums, part_sums, picked, picked_in_part, gradient;
  double total = 0;

  LossReference(const Case& c, const std::vector<double>& logits, Index stride, Index first, double scale)
      : gradient(logits) {
    for (Index r = 0; r < c.rows; ++r) {
      const Index label = label_of(r, c.n);
      const auto at = [&](Index i) { return static_cast<std::size_t>(r * stride + i); };
      const auto sum_from = [&](Index from) {
        double most = -1e300, sum = 0;
        for (Index i = from; i < c.n; ++i) most = std::max(most, logits[at(i)]);
        for (Index i = from; i < c.n; ++i) sum += std::exp(logits[at(i)] - most);
        return most + std::log(sum);
      };
      labels.push_back(label);
      sums.push_back(sum_from(0)), part_sums.push_back(sum_from(first));
      picked.push_back(label < 0 ? 0 : logits[at(label)]);
      picked_in_part.push_back(label < first ? 0 : picked.back());
      if (label >= 0) total += sums.back() - picked.back();
      for (Index i = 0; i < c.n; ++i) {
        const double p = std::exp(logits[at(i)] - sums.back());
        gradient[at(i)] = label < 0 ? 0 : (p - (i == label ? 1 : 0)) * scale;
      }
    }
  }
};

// Large logits, so that a sum of exponentials that does not begin at the largest would overflow.
template <class T>
void losses(const Case& c, Index first, Index gap) {
  using A = Wide<T>;
  constexpr double kScale = 0.25;
  const Index stride = c.n + gap,
              share = c.n - first;  // of the second share; the first has the entries below it
  const Array<T> logits(c.rows * stride, c.shift, 1, 60), part(c.rows * stride, c.shift, 1, 60);
  const Array<A> lse(c.rows, 0, 2), picked(c.rows, 0, 3), of_part(c.rows, 0, 4), picked_there(c.rows, 0, 5);
  const Array<double> total(1, 0, 6);
  const LossReference want(c, logits.wide(), stride, first, kScale);
  const std::vector<double> all{total[0] + want.total};
  const Index* labels = want.labels.data();
  const Shape shape{c.blocks, c.threads, sizeof(A) * kWarp};
  const double close = std::is_same_v<T, double> ? 1e-13 : 1e-5;
  const bool packed = c.packed && first % (16 / static_cast<Index>(sizeof(T))) == 0;
  CrossEntropyArgs args{part.at() + first,
                        labels,
                        of_part.at(),
                        picked_there.at(),
                        total.at(),
                        c.rows,
                        share,
                        stride,
                        first,
                        kScale,
                        1,
                        0};
  host_kernels::run<T>("cross_entropy", packed, shape, &args);
  expect_near(said<T>("cross_entropy of a share", c), of_part, want.part_sums, close);
  expect_near(said<T>("label's logit of a share", c), picked_there, want.picked_in_part, close);
  args = {logits.at(), labels, lse.at(), picked.at(), total.at(), c.rows, c.n, stride, 0, kScale, 1, 1};
  host_kernels::run<T>("cross_entropy", c.packed, shape, &args);
  expect_near(said<T>("cross_entropy", c), logits, want.gradient, tolerance<T>());
  expect_near(said<T>("log-sum-exp", c), lse, want.sums, close);
  expect_near(said<T>("label's logit", c), picked, want.picked, close);
  host_kernels::run<T>("add_losses", false, {1, 512, sizeof(A) * kWarp}, &args);
  expect_near(said<T>("add_losses", c), total, all, close);
  // The second share's gradient from the whole sum.
  args = {part.at() + first, labels, lse.at(), nullptr, nullptr, c.rows, share, stride, first, kScale, 0, 1};
  host_kernels::run<T>("cross_entropy", packed, shape, &args);
  std::vector<double> got, expected;
  for (Index r = 0; r < c.rows; ++r)
    for (Index i = first; i < c.n; ++i)
      got.push_back(part[r * stride + i]),
          expected.push_back(want.gradient[static_cast<std::size_t>(r * stride + i)]);
  expect_near(said<T>("gradient of a share", c), Read{got}, expected, tolerance<T>());
}

}  // namespace device_test
