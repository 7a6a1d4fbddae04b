#include "orchestrator/ingest/evidence.h"

#include <gtest/gtest.h>

#include "schema/codec.h"

namespace sweep::ingest {
namespace {

TEST(Evidence, TheLastLineOfALogIsBoundedAndSafeToPrint) {
  EXPECT_EQ(last_line("starting\nthe index \x1b[31mhas no room\r\n \n"), "the index  [31mhas no room");
  EXPECT_EQ(last_line("only this"), "only this");
  EXPECT_EQ(last_line(" \n\n"), "");
  EXPECT_LT(last_line(std::string(1 << 20, 'x')).size(), 1000u);
}

TEST(Evidence, ARankWithoutARecordSaysWhatItsLogSays) {
  RankExit quiet, said;
  quiet.exit_code = said.exit_code = 0;
  said.log_tail = "no room";
  EXPECT_TRUE(describe_exit(said).starts_with(describe_exit(quiet)));
  EXPECT_TRUE(describe_exit(said).ends_with("no room"));
}

TEST(Evidence, RecordsThatTheAgentCouldNotReadAreKept) {
  AttemptReports reports;
  reports.end = AttemptEnd();
  reports.end->cause = EndCause::kRankFailed;
  reports.end->evidence.unreadable_records = {"of attempt 0"};
  const Evidence kept = evidence(Attempt(), reports, Result());
  EXPECT_EQ(kept.unreadable_records, std::vector<std::string>{"of attempt 0"});
}

TEST(Evidence, OfAnAgentsEvidenceAMegabyteIsKept) {
  constexpr i64 kRanks = 300;
  constexpr std::size_t kMegabyte = 1u << 20, kStack = 8000;
  Attempt attempt;
  AttemptReports reports;
  AttemptEnd& end = reports.end.emplace();
  end.cause = EndCause::kHang, end.evidence.rank = kRanks - 1, end.evidence.why = "no progress";
  for (i64 rank = 0; rank < kRanks; ++rank) {
    RankPosition& each = end.evidence.ranks.emplace_back();
    each.rank = rank, each.phase = "step", each.stacks = std::string(kStack, 'x');
  }
  Result r = judge(attempt, reports);
  EXPECT_EQ(r.outcome, Outcome::kHang);
  EXPECT_EQ(r.rank, kRanks - 1);
  EXPECT_LT(to_text(r.evidence).size(), kMegabyte + 1000);
  ASSERT_TRUE(r.evidence.hang);
  EXPECT_GT(r.evidence.hang->ranks.size(), 100u);
  EXPECT_LT(r.evidence.hang->ranks.size(), kMegabyte / kStack);
  EXPECT_EQ(r.evidence.hang->ranks.front().rank, 0);
  end.evidence.unreadable_records.push_back(std::string(kMegabyte, 'x'));
  r = judge(attempt, reports);
  EXPECT_EQ(r.outcome, Outcome::kHang);
  EXPECT_FALSE(r.evidence.hang);
  EXPECT_TRUE(r.evidence.unreadable_records.empty());
  EXPECT_EQ(r.rank, std::nullopt);
}

}  // namespace
}  // namespace sweep::ingest
