// Which configuration `suggest` calls the fastest of a place.
#include "orchestrator/answers/tables/suggest.h"

#include <gtest/gtest.h>

#include "tests/unit/answers/rows.h"

namespace sweep::answers {
namespace {

std::vector<ResultRow> on_one_place(std::initializer_list<ResultRow> rows) {
  std::vector<ResultRow> out(rows);
  for (std::size_t i = 0; i < out.size(); ++i) out[i].trial.micro_batch_size = static_cast<i64>(i) + 1;
  return out;
}

TEST(Suggest, ATrialThatWasStoppedEarlyIsNotTheFastest) {
  auto rows = on_one_place({ok_row("b", 1, 900), ok_row("a", 1, 500)});
  rows[0].metrics.steps_saved = 5;
  EXPECT_NE(suggestions(rows).find("(trial a)"), std::string::npos) << suggestions(rows);
}

TEST(Suggest, OfEqualsTheSmallerIdIsTheFastest) {
  const auto rows = on_one_place({ok_row("b", 1, 900), ok_row("a", 1, 900)});
  EXPECT_NE(suggestions(rows).find("(trial a)"), std::string::npos) << suggestions(rows);
}

TEST(Suggest, ALargerBatchIsOutOfMemoryFromTheSmallestThatWas) {
  const auto rows = on_one_place(
      {ok_row("a", 1, 900), bad_row("b", 1, Outcome::kOom, ""), bad_row("c", 1, Outcome::kOom, "")});
  EXPECT_NE(suggestions(rows).find("ran up to 1, out of memory from 2\n"), std::string::npos)
      << suggestions(rows);
}

TEST(Suggest, NothingIsSaidOfAPlaceWhereNothingRan) {
  EXPECT_EQ(suggestions({}), "");
  EXPECT_EQ(suggestions({bad_row("a", 1, Outcome::kOom, "")}), "");
}

}  // namespace
}  // namespace sweep::answers
