
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "orchestrator/answers/tables/explain.h"

namespace sweep::answers {
namespace {

Evidence evidence(std::optional<i64> cause_rank) {
  Evidence out;
  out.cause = EndCause::kHang, out.cause_rank = cause_rank;
  out.hang = AgentEvidence{.why = "rank 1 made no progress", .ranks = std::vector<RankPosition>(2)};
  out.hang->ranks[0].stacks = "Thread 1: \"MainThread\"\n    all_reduce (c10d.py:7)\n";
  out.hang->ranks[1].rank = 1;
  out.hang->ranks[1].stacks = "Thread 2: \"MainThread\"\n    sleep (train.py:34)\n";
  return out;
}

TEST(Stacks, AreThoseOfTheRankThatDecides) {
  EXPECT_EQ(deciding_stacks(evidence(1))->rank, 1);
  EXPECT_EQ(deciding_stacks(evidence(1))->text, "Thread 2: \"MainThread\"\n    sleep (train.py:34)\n");
  EXPECT_EQ(deciding_stacks(evidence({}))->rank, 0);
  EXPECT_EQ(deciding_stacks(evidence(7))->rank, 0);
}

TEST(Stacks, OfEvidenceWithoutThemNothingIsShown) {
  Evidence none;
  EXPECT_FALSE(deciding_stacks(none));
  none.ranks.resize(1), none.hang.emplace();
  EXPECT_FALSE(deciding_stacks(none));
}

TEST(Stacks, ExplainShowsThemLineByLine) {
  ExplainView view;
  view.entry.admitted = true;
  ExplainAttempt attempt;
  attempt.result.emplace();
  attempt.result->outcome = Outcome::kHang;
  attempt.result->evidence = evidence(1);
  view.attempts.push_back(attempt);
  std::istringstream text(explain(view, 0));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  EXPECT_THAT(lines, ::testing::Contains(std::string(11, ' ') + "    sleep (train.py:34)"));
}

}  // namespace
}  // namespace sweep::answers
