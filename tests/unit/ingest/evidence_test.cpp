#include "orchestrator/ingest/evidence.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sweep::ingest
