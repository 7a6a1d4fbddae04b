// The sides of a comparison: what the answers say of them, without a database.
#include "orchestrator/answers/statistics/compare_sides.h"

#include <gtest/gtest.h>

#include "orchestrator/answers/pages/compare_page.h"
#include "schema/rehearsal.h"
#include "tests/support/error_matchers.h"
#include "tests/support/must.h"
#include "tests/unit/answers/rows.h"

namespace sweep::answers {
namespace {

CompareSide side(const std::string& name, std::vector<ResultRow> rows, i64 id = 1) {
  CompareSide out;
  out.file = "/a.db";
  out.sweep.name = name, out.sweep.id = id;
  out.rows = std::move(rows);
  return out;
}

TEST(CompareSides, TheSameSweepOfAnotherDatabaseIsAnother) {
  const CompareSide a = side("s", {}), twin = side("s", {}), other = side("s", {}, 2);
  CompareSide elsewhere = side("s", {});
  elsewhere.file = "/b.db";
  EXPECT_TRUE(is_same_sweep(a, twin));
  EXPECT_FALSE(is_same_sweep(a, other));
  EXPECT_FALSE(is_same_sweep(a, elsewhere));
  EXPECT_EQ(transfer_names(a, elsewhere).a, "s in A");
  EXPECT_EQ(transfer_names(a, side("t", {})).b, "t");
}

TEST(CompareSides, ASideWithoutACommonConfigurationIsAnError) {
  const std::vector<CompareSide> sides = {side("s", {ok_row("aa", 1, 10)}), side("t", {ok_row("aa", 1, 20)}),
                                          side("u", {ok_row("bb", 2, 20)})};
  const auto found = must(compare_sides(std::span(sides).first(2), {}));
  EXPECT_EQ(found.front().pairs.size(), 1u);
  EXPECT_THAT(error_in(compare_sides(sides, {})).message, ::testing::HasSubstr("'s' and 'u'"));
}

TEST(CompareSides, TrialsAreNamedByTheBeginningOfTheirIdsInTheOrderOfTheWords) {
  const std::vector<ResultRow> rows = {ok_row("aa11", 1, 10), ok_row("aa22", 2, 20), ok_row("bb33", 4, 5)};
  const auto named = must(trials_named(rows, std::vector<std::string>{"bb", "aa1"}));
  EXPECT_EQ(named, (std::vector<const ResultRow*>{&rows[2], &rows[0]}));
  EXPECT_FALSE(trials_named(rows, std::vector<std::string>{"aa"})) << "two trials begin so";
  EXPECT_FALSE(trials_named(rows, std::vector<std::string>{"c"})) << "none begins so";
}

TEST(CompareSides, TablesAndTextSayWhichSidesWereRehearsed) {
  const std::vector<CompareSide> sides = {side("s", {}), side(rehearsal_of("s"), {}), side("t", {})};
  EXPECT_EQ(rehearsed_sides(sides), "B");
  EXPECT_TRUE(rehearsed_sides_line(sides).starts_with("B: "));
  Table table;
  table.columns = {"trial"};
  table.rows = {{std::string("aa")}};
  mark_rehearsed_sides(table, std::span(sides).first(1));
  EXPECT_EQ(table.columns.size(), 1u) << "all were measured";
  mark_rehearsed_sides(table, sides);
  EXPECT_EQ(table.columns.back(), "rehearsed");
  EXPECT_EQ(table.rows[0].back(), Value(std::string("B")));
}

TEST(CompareSides, ThePageKnowsEachSideByNameAndOptions) {
  std::vector<CompareSide> sides = {side("s", {}), side("t", {})};
  sides[1].sweep.options.slots = 3;
  const auto page = compared_sweeps(sides, "now");
  EXPECT_EQ(page.names, (std::vector<std::string>{"s", "t"}));
  EXPECT_EQ(page.options[1].slots, 3);
  EXPECT_EQ(page.made, "now");
}

}  // namespace
}  // namespace sweep::answers
