#include "base/quantiles.h"

#include <gtest/gtest.h>

#include <numeric>

namespace sweep {
namespace {

std::vector<double> up_to(int n) {
  std::vector<double> v(static_cast<std::size_t>(n));
  std::iota(v.begin(), v.end(), 1.0);
  return v;
}

TEST(Quantiles, MedianOfOddEvenOneAndNone) {
  EXPECT_DOUBLE_EQ(*median({9, 1, 5}), 5);
  EXPECT_DOUBLE_EQ(*median({9, 1, 5, 7}), 6);
  EXPECT_DOUBLE_EQ(*median({3}), 3);
  EXPECT_FALSE(median({}).has_value());
}

TEST(Quantiles, InterquartileRangeInterpolates) {
  EXPECT_DOUBLE_EQ(*interquartile_range({1, 2, 3, 4}), 1.5);  // 3.25 - 1.75, as numpy.percentile
  EXPECT_DOUBLE_EQ(*interquartile_range({1, 2, 3, 4, 5}), 2);
  EXPECT_FALSE(interquartile_range({1}).has_value());
}

// k of the tables of order-statistic intervals for the median at 95 %: n = 6: 1, 8: 1, 9: 2, 10: 2, 12: 3,
// 20: 6, 50: 18.
TEST(Quantiles, MedianIntervalEqualsTheTables) {
  EXPECT_FALSE(median_interval(up_to(5)).has_value());
  const std::pair<int, int> table[] = {{6, 1},  {8, 1},  {9, 2},   {10, 2},
                                       {12, 3}, {20, 6}, {50, 18}, {100, 40}};
  for (const auto& [n, k] : table) {
    const auto interval = median_interval(up_to(n));
    ASSERT_TRUE(interval.has_value()) << n;
    EXPECT_DOUBLE_EQ(interval->first, k) << n;
    EXPECT_DOUBLE_EQ(interval->second, n + 1 - k) << n;
  }
}

TEST(Quantiles, ExactAndApproximateIntervalMeet) {
  const auto exact = median_interval(up_to(1000)), approximate = median_interval(up_to(1001));
  EXPECT_NEAR(exact->first, approximate->first, 2);
  EXPECT_NEAR(exact->second, approximate->second, 2);
}

}  // namespace
}  // namespace sweep
