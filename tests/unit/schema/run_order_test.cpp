#include "schema/run_order.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace sweep {
namespace {

TEST(RunOrder, EntriesOfOnePlaceKeepTheOrderInWhichTheyWereStored) {
  EXPECT_LT((RunPlace{1, 9}), (RunPlace{2, 1}));
  EXPECT_LT((RunPlace{2, 1}), (RunPlace{2, 3}));
  std::vector<PlanEntry> entries;
  for (const auto& [id, place] : std::vector<std::pair<const char*, i64>>{
           {"c", 2}, {"a", 0}, {"b", 1}, {"d", 7}, {"g", 9}, {"e", 7}, {"f", 7}}) {
    entries.emplace_back();
    entries.back().id = id, entries.back().order = place;
  }
  for (int times = 0; times < 2; ++times) {
    put_in_run_order(entries);
    std::string ids;
    for (const PlanEntry& entry : entries) ids += entry.id;
    EXPECT_EQ(ids, "abcdefg");
  }
}

}  // namespace
}  // namespace sweep
