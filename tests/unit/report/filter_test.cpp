#include "orchestrator/report/statistics/filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/report/rows.h"

namespace sweep::report {
namespace {

using testing::HasSubstr;

std::vector<ResultRow> rows_of_tp(std::initializer_list<i64> degrees) {
  std::vector<ResultRow> rows;
  for (const i64 tp : degrees) rows.push_back(ok_row(std::to_string(tp), tp, double(tp)));
  return rows;
}

std::vector<std::string> kept(const std::vector<std::string>& conditions) {
  std::vector<std::string> ids;
  const auto rows = keep_only(rows_of_tp({1, 2, 4, 8, 16}), conditions);
  if (!rows) return {rows.error().message};
  for (const auto& row : *rows) ids.push_back(row.trial_id);
  return ids;
}

TEST(KeepOnly, ValuesRangesAndBoth) {
  EXPECT_THAT(kept({"tp=2,8"}), testing::ElementsAre("2", "8"));
  EXPECT_THAT(kept({"tp=4.."}), testing::ElementsAre("4", "8", "16"));
  EXPECT_THAT(kept({"tp=..2,16"}), testing::ElementsAre("1", "2", "16"));
  EXPECT_THAT(kept({"tp=2..8", "tokens_per_s_gpu=3..5"}), testing::ElementsAre("4"));
  EXPECT_EQ(kept({}).size(), 5u);
}

TEST(KeepOnly, TextIsComparedAsItIsShown) {
  auto rows = rows_of_tp({1, 2});
  rows[0].trial.model = "a=b";
  EXPECT_EQ(keep_only(rows, std::vector<std::string>{"model=a=b"})->size(), 1u);
}

TEST(KeepOnly, WhatFitsNothingIsRefusedWithWhatThereIs) {
  EXPECT_THAT(kept({"tp=3"})[0], HasSubstr("no configuration has such a tp; there are: 1, 2, 4, 8, 16"));
  EXPECT_THAT(kept({"tpp=3"})[0], HasSubstr("did you mean 'tp'?"));
  EXPECT_THAT(kept({"tp"})[0], HasSubstr("as tp=1,8"));
  EXPECT_TRUE(keep_only({}, std::vector<std::string>{"tp=3"})->empty())
      << "an empty sweep is no mistake of the condition";
}

}  // namespace
}  // namespace sweep::report
