#include "worker/phantom/busy_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace sweep::phantom {
namespace {

TEST(BusyTime, OverlapsCountOnce) {
  BusyTime busy;
  EXPECT_EQ(busy.add(10, 20), 10);
  EXPECT_EQ(busy.add(15, 30), 10);
  EXPECT_EQ(busy.add(12, 18), 0);
  EXPECT_EQ(busy.add(0, 5), 5);
  EXPECT_EQ(busy.add(5, 10), 5);
  EXPECT_EQ(busy.add(40, 40), 0);
  EXPECT_EQ(busy.total(), 30);
  EXPECT_EQ(busy.until(), 30);
}

TEST(BusyTime, IsTheSameInEveryOrder) {
  std::mt19937 random(7);
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  std::vector<bool> covered(2000);
  for (int i = 0; i < 200; ++i) {
    const auto begin = static_cast<std::int64_t>(random() % 1900),
               end = begin + static_cast<std::int64_t>(random() % 20);
    spans.emplace_back(begin, end);
    std::fill(covered.begin() + begin, covered.begin() + end, true);
  }
  const auto expected = std::count(covered.begin(), covered.end(), true);
  for (int order = 0; order < 50; ++order) {
    std::shuffle(spans.begin(), spans.end(), random);
    BusyTime busy;
    std::int64_t added = 0;
    for (const auto& [begin, end] : spans) added += busy.add(begin, end);
    EXPECT_EQ(busy.total(), expected);
    EXPECT_EQ(added, expected);
  }
}

}  // namespace
}  // namespace sweep::phantom
