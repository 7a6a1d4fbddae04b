#include "orchestrator/answers/tables/stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "orchestrator/answers/tables/explain.h"

namespace sweep::answers {
namespace {

using nlohmann::json;

json evidence(json cause_rank) {
  json out = {{"cause", "hang"},
              {"hang",
               {{"why", "rank 1 made no progress"},
                {"ranks",
                 {{{"rank", 0}, {"stacks", "Thread 1: \"MainThread\"\n    all_reduce (c10d.py:7)\n"}},
                  {{"rank", 1}, {"stacks", "Thread 2: \"MainThread\"\n    sleep (train.py:34)\n"}}}}}}};
  if (!cause_rank.is_null()) out["cause_rank"] = std::move(cause_rank);
  return out;
}

TEST(Stacks, AreThoseOfTheRankThatDecides) {
  EXPECT_EQ(deciding_stacks(evidence(1))->rank, "1");
  EXPECT_EQ(deciding_stacks(evidence(1))->text, "Thread 2: \"MainThread\"\n    sleep (train.py:34)\n");
  EXPECT_EQ(deciding_stacks(evidence(nullptr))->rank, "0");
  EXPECT_EQ(deciding_stacks(evidence(7))->rank, "0");
}

TEST(Stacks, OfEvidenceWithoutThemNothingIsShown) {
  for (const char* text :
       {"null", "[]", "{}", R"({"hang": 1})", R"({"hang": {"ranks": {}}})",
        R"({"ranks": [1, {"rank": 0}, {"rank": "x", "stacks": "y"}, {"rank": 1, "stacks": 2}]})"})
    EXPECT_FALSE(deciding_stacks(json::parse(text))) << text;
}

TEST(Stacks, ExplainShowsThemLineByLine) {
  ExplainView view;
  view.entry.admitted = true;
  ExplainAttempt attempt;
  attempt.result.emplace();
  attempt.result->outcome = Outcome::kHang;
  attempt.result->evidence = evidence(1).dump();
  view.attempts.push_back(attempt);
  std::istringstream text(explain(view, 0));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  EXPECT_THAT(lines, testing::Contains(std::string(11, ' ') + "    sleep (train.py:34)"));
}

}  // namespace
}  // namespace sweep::answers
