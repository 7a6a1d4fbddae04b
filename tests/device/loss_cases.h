// The cross-entropy by the fused kernels, whole and over two shares of the vocabulary, beside double arithmetic.
#pragma once
#include "tests/device/cases.h"

namespace device_test {

// Row r's label; each fourth row has none.
inline Index label_of(Index r, Index entries) {
  return r % 4 == 3 ? -100 : (7 * r + 2) % entries;
}

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
  std::vector<Index> labels;
  std::vector<double> want = logits.wide(), sums, label_logits, part_sums, there, all{total[0]};
  for (Index r = 0; r < c.rows; ++r) {
    const Index label = label_of(r, c.n);
    labels.push_back(label);
    const auto sum_from = [&](Index from) {
      double most = -1e300, sum = 0;
      for (Index i = from; i < c.n; ++i) most = std::max(most, logits[r * stride + i]);
      for (Index i = from; i < c.n; ++i) sum += std::exp(logits[r * stride + i] - most);
      return most + std::log(sum);
    };
    sums.push_back(sum_from(0)), part_sums.push_back(sum_from(first));
    label_logits.push_back(label < 0 ? 0 : logits[r * stride + label]);
    there.push_back(label < first ? 0 : label_logits.back());
    if (label >= 0) all[0] += sums.back() - label_logits.back();
    for (Index i = 0; i < c.n; ++i) {
      const double p = std::exp(logits[r * stride + i] - sums.back());
      want[static_cast<std::size_t>(r * stride + i)] = label < 0 ? 0 : (p - (i == label ? 1 : 0)) * kScale;
    }
  }
  const Shape shape{c.blocks, c.threads, sizeof(A) * kWarp};
  CrossEntropyArgs args{part.at() + first,
                        labels.data(),
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
  const double close = std::is_same_v<T, double> ? 1e-13 : 1e-5;
  const bool packed = c.packed && first % (16 / static_cast<Index>(sizeof(T))) == 0;
  host_kernels::run<T>("cross_entropy", packed, shape, &args);
  expect_near(said<T>("cross_entropy of a share", c), of_part, part_sums, close);
  expect_near(said<T>("label's logit of a share", c), picked_there, there, close);
  args = {logits.at(), labels.data(), lse.at(), picked.at(), total.at(), c.rows,
          c.n,         stride,        0,        kScale,      1,          1};
  host_kernels::run<T>("cross_entropy", c.packed, shape, &args);
  expect_near(said<T>("cross_entropy", c), logits, want, tolerance<T>());
  expect_near(said<T>("log-sum-exp", c), lse, sums, close);
  expect_near(said<T>("label's logit", c), picked, label_logits, close);
  host_kernels::run<T>("add_losses", false, {1, 512, sizeof(A) * kWarp}, &args);
  expect_near(said<T>("add_losses", c), total, all, close);
  // The second share's gradient from the whole sum.
  args = {part.at() + first,
          labels.data(),
          lse.at(),
          nullptr,
          nullptr,
          c.rows,
          share,
          stride,
          first,
          kScale,
          0,
          1};
  host_kernels::run<T>("cross_entropy", packed, shape, &args);
  for (Index r = 0; r < c.rows; ++r) {
    std::vector<double> row(want.begin() + r * stride + first, want.begin() + r * stride + c.n);
    std::vector<double> got;
    for (Index i = first; i < c.n; ++i) got.push_back(part[r * stride + i]);
    expect_near(said<T>("gradient of a share", c), Read{got}, row, tolerance<T>());
  }
}

}  // namespace device_test
