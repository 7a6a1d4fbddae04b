#include "orchestrator/answers/statistics/filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/expected.h"
#include "tests/support/error_matchers.h"
#include "tests/support/must.h"
#include "tests/unit/answers/rows.h"

namespace sweep::answers {
namespace {

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
  EXPECT_THAT(kept({"tp=2,8"}), ::testing::ElementsAre("2", "8"));
  EXPECT_THAT(kept({"tp=4.."}), ::testing::ElementsAre("4", "8", "16"));
  EXPECT_THAT(kept({"tp=..2,16"}), ::testing::ElementsAre("1", "2", "16"));
  EXPECT_THAT(kept({"tp=2..8", "tokens_per_s_gpu=3..5"}), ::testing::ElementsAre("4"));
  EXPECT_EQ(kept({}).size(), 5u);
}

TEST(KeepOnly, NumbersAreComparedAsNumbers) {
  EXPECT_THAT(kept({"tp=2.0,8e0"}), ::testing::ElementsAre("2", "8"));
  auto rows = rows_of_tp({1, 2, 4});
  rows[0].trial.labels = R"({"lr":0.0002})", rows[1].trial.labels = R"({"lr":0.00012345678})";
  rows[2].trial.labels = R"({"lr":0.00012345679})";
  for (const auto& [condition, id] :
       {std::pair("lr=2e-4", "1"), std::pair("lr=.0002", "1"), std::pair("lr=0.00012345678", "2"),
        std::pair("lr=1.2345679e-4", "4")}) {
    const auto left = must(keep_only(rows, std::vector<std::string>{condition}));
    ASSERT_EQ(left.size(), 1u) << condition;
    EXPECT_EQ(left.front().trial_id, id);
  }
  rows[0].trial.model = "046", rows[1].trial.model = "46";
  EXPECT_EQ(keep_only(rows, std::vector<std::string>{"model=46"})->size(), 1u) << "names are no numbers";
}

TEST(KeepOnly, TextIsComparedAsItIsShown) {
  auto rows = rows_of_tp({1, 2});
  rows[0].trial.model = "a=b";
  EXPECT_EQ(keep_only(rows, std::vector<std::string>{"model=a=b"})->size(), 1u);
}

TEST(KeepOnly, WhatFitsNothingIsRefusedWithWhatThereIs) {
  const auto refused = [](const std::string& condition) {
    return error_in(keep_only(rows_of_tp({1, 2, 4, 8, 16}), std::vector{condition}));
  };
  EXPECT_THAT(refused("tp=3"), IsError(ErrorKind::kNotFound, "tp"));
  EXPECT_THAT(refused("tpp=3"), AllOf(IsError(ErrorKind::kUnknownName, "tpp"), Suggests("tp")));
  EXPECT_THAT(refused("tp"), IsError(ErrorKind::kInvalidValue, "tp"));
  EXPECT_TRUE(keep_only({}, std::vector<std::string>{"tp=3"})->empty())
      << "an empty sweep is no mistake of the condition";
}

}  // namespace
}  // namespace sweep::answers
