// The curve of an attempt's load: bounded however long it takes, means of a stretch, and its most memory.
#include "worker/agent/evidence/load_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace sweep::agent {
namespace {

TEST(LoadCurve, AFewLooksAreAPointEach) {
  LoadCurve curve;
  curve.add({0.104, 50, 3e9, 200});
  curve.add({0.2, 70, 2e9, 100});
  const NodeLoad load = curve.load();
  EXPECT_EQ(load.at_s, (std::vector<double>{0.1, 0.2}));
  EXPECT_EQ(load.util, (std::vector<double>{50, 70}));
  EXPECT_EQ(load.memory_bytes, (std::vector<double>{3e9, 2e9}));
  EXPECT_EQ(load.power_w, (std::vector<double>{200, 100}));
}

TEST(LoadCurve, OfManyLooksNeighboursBecomeOneWithTheirMeanAndTheirMostMemory) {
  LoadCurve curve;
  const int looks = 1000;
  for (int i = 0; i < looks; ++i) curve.add({double(i + 1), double(i % 2 * 100), i == 500 ? 9e9 : 1e9, {}});
  const NodeLoad load = curve.load();
  EXPECT_LE(load.at_s.size(), LoadCurve::kMostPoints);
  EXPECT_GT(load.at_s.size(), LoadCurve::kMostPoints / 2 - 1);
  EXPECT_EQ(load.at_s.back(), looks);
  EXPECT_TRUE(std::ranges::is_sorted(load.at_s));
  for (const double util : load.util) EXPECT_EQ(util, 50);
  EXPECT_EQ(std::ranges::count(load.memory_bytes, 9e9), 1) << "the peak is not averaged away";
  EXPECT_TRUE(load.power_w.empty()) << "nothing told it";
}

TEST(LoadCurve, AMissingValueIsNotZero) {
  LoadCurve curve;
  curve.add({1, {}, 1e9, {}});
  curve.add({2, 40, 1e9, {}});
  const NodeLoad load = curve.load();
  ASSERT_EQ(load.util.size(), 2u);
  EXPECT_TRUE(std::isnan(load.util[0]));
  EXPECT_EQ(load.util[1], 40);
}

}  // namespace
}  // namespace sweep::agent
