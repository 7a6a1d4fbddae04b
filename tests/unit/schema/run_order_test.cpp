#include "schema/run_order.h"

#include <gtest/gtest.h>

namespace sweep {
namespace {

TEST(RunOrder, EntriesOfOnePlaceKeepTheOrderInWhichTheyWereStored) {
  EXPECT_LT((RunPlace{1, 9}), (RunPlace{2, 1}));
  EXPECT_LT((RunPlace{2, 1}), (RunPlace{2, 3}));
  std::vector<PlanEntry> entries(3);
  entries[0].id = "b", entries[0].order = 4;
  entries[1].id = "a", entries[1].order = 4;
  entries[2].id = "c", entries[2].order = 1;
  put_in_run_order(entries);
  EXPECT_EQ(entries[0].id + entries[1].id + entries[2].id, "cba");
}

}  // namespace
}  // namespace sweep
