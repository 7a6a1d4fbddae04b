// Every way in which ranks can end, through the real launcher and agent, by zygote and by plain exec.
#include <signal.h>
#include <stdlib.h>

#include "base/files.h"
#include "tests/support/local_fixture.h"
#include "tests/support/must.h"

namespace sweep::launch {
namespace {

using nlohmann::json;

// start form, PID namespace
class Outcomes : public LocalFixture, public ::testing::WithParamInterface<std::tuple<RankStart, bool>> {
 protected:
  void SetUp() override {
    LocalFixture::SetUp();
    options_.allow_namespace = std::get<1>(GetParam());
  }
  Attempt scripted(i64 dp, const json& script) const {
    Attempt out = attempt(7, dp, script);
    out.start = std::get<0>(GetParam());
    return out;
  }
};
INSTANTIATE_TEST_SUITE_P(Start, Outcomes,
                         ::testing::Combine(::testing::Values(RankStart::kZygote, RankStart::kExec),
                                            ::testing::Values(true, false)),
                         [](const auto& info) {
                           return std::string(to_string(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) ? "" : "_without_namespace");
                         });

TEST_P(Outcomes, OkRanksLeaveARecordExitAndLeaveNothingElse) {
  run_one(scripted(3, {{"outcome", "ok"}}));
  const auto records = records_of(7);
  ASSERT_EQ(records.size(), 3u);
  for (const auto& record : records) {
    EXPECT_EQ(record.outcome, Outcome::kOk);
    EXPECT_EQ(record.samples.size(), 5u);
  }
  for (const auto& exit : exits_of(7)) {
    EXPECT_EQ(exit.exit_code, 0);
    EXPECT_FALSE(exit.killed_by_agent);
    EXPECT_TRUE(exit.log_tail.empty());
  }
  EXPECT_EQ(exits_of(7).size(), 3u);
  EXPECT_EQ(end_of(7).cause, EndCause::kDone);
  EXPECT_TRUE(end_of(7).clean) << end_of(7).cleanup_failure;
  const auto log = must(files::read(spool::rank_log(spool::attempt_dir(spool_, 7), 2)));
  EXPECT_NE(log.find("rank 2 enters init"), std::string::npos);
}

// Also where a zygote, which has loaded its libraries, starts ranks.
TEST_P(Outcomes, TheTrialsVariablesAreInTheEnvironmentOfItsRanks) {
  ::setenv("SAID_ONE", "by the agent", 1);
  Attempt wanted = scripted(2, {{"outcome", "ok"}});
  wanted.trial.env = "SAID_ONE=1 SAID_TWO=a,b:2";
  run_one(wanted);
  ::unsetenv("SAID_ONE");
  ASSERT_EQ(end_of(7).cause, EndCause::kDone);
  for (const i64 rank : {0, 1}) {
    const auto log = must(files::read(spool::rank_log(spool::attempt_dir(spool_, 7), rank)));
    EXPECT_NE(log.find("SAID_ONE=1\n"), std::string::npos) << log;
    EXPECT_NE(log.find("SAID_TWO=a,b:2\n"), std::string::npos) << log;
    EXPECT_EQ(log.find("by the agent"), std::string::npos) << log;
  }
}

TEST_P(Outcomes, VariablesThatSweepSetsAreNotTakenFromAnInbox) {
  Attempt wanted = scripted(1, {{"outcome", "ok"}});
  wanted.trial.env = "LD_PRELOAD=/tmp/other.so";
  run_one(wanted);
  EXPECT_EQ(end_of(7).cause, EndCause::kStartFailed);
}

TEST_P(Outcomes, OomOfOneRankEndsTheOthers) {
  run_one(scripted(3, {{"outcome", "oom"}, {"rank", 1}}));
  EXPECT_EQ(end_of(7).cause, EndCause::kRankFailed);
  ASSERT_EQ(records_of(7).size(), 1u);
  EXPECT_EQ(records_of(7)[0].outcome, Outcome::kOom);
  EXPECT_EQ(records_of(7)[0].oom_asked_bytes, 1 << 30);
  for (const auto& exit : exits_of(7)) EXPECT_EQ(exit.killed_by_agent, exit.rank != 1) << exit.rank;
}

TEST_P(Outcomes, CrashBySignalKeepsTheSignalAndTheLog) {
  run_one(scripted(2, {{"outcome", "crash_signal"}, {"rank", 0}}));
  EXPECT_EQ(end_of(7).cause, EndCause::kRankFailed);
  const auto exits = exits_of(7);
  ASSERT_EQ(exits.size(), 2u);
  EXPECT_EQ(exits[0].signal, SIGSEGV);
  EXPECT_FALSE(exits[0].killed_by_agent);
  EXPECT_NE(exits[0].log_tail.find("rank 0 enters"), std::string::npos);
  EXPECT_TRUE(exits[1].killed_by_agent);
}

TEST_P(Outcomes, ExitCodeAndInvalidUtf8OfTheLogSurvive) {
  run_one(scripted(1, {{"outcome", "crash_exit"}}));
  const auto exits = exits_of(7);
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(exits[0].exit_code, 3);
  EXPECT_NE(exits[0].log_tail.find("scripted exit with code 3, bad byte \xef\xbf\xbd here"),
            std::string::npos);
}

TEST_P(Outcomes, ExceptionIsInTheRecordOfTheRank) {
  run_one(scripted(2, {{"outcome", "exception"}, {"rank", 1}}));
  ASSERT_EQ(records_of(7).size(), 1u);
  EXPECT_EQ(records_of(7)[0].message, "std::runtime_error: scripted");
}

TEST_P(Outcomes, HangIsEndedWithEvidenceOfWhereEachRankIs) {
  Attempt wanted = scripted(2, {{"outcome", "hang"}, {"rank", 1}});
  wanted.deadlines.step_s = 1;  // rank 0 comes to its collective meanwhile
  run_one(wanted);
  EXPECT_EQ(end_of(7).cause, EndCause::kHang);
  EXPECT_TRUE(end_of(7).clean) << end_of(7).cleanup_failure;
  const auto ranks = end_of(7).evidence.ranks;
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[1].phase, "step");
  EXPECT_GE(ranks[1].seconds_without_progress, 0.3);
  EXPECT_EQ(ranks[0].part, "communication");
  EXPECT_EQ(ranks[0].collectives_entered, 1);
  EXPECT_EQ(ranks[0].collectives_done, 0);
  EXPECT_TRUE(ranks[1].where);
  for (const auto& exit : exits_of(7)) EXPECT_TRUE(exit.killed_by_agent);
}

TEST_P(Outcomes, HangThatIgnoresSigtermIsKilled) {
  Attempt wanted = scripted(1, {{"outcome", "hang_ignore_sigterm"}});
  wanted.deadlines.step_s = 0.4;
  run_one(wanted);
  EXPECT_EQ(end_of(7).cause, EndCause::kHang);
  for (const auto& exit : exits_of(7)) EXPECT_EQ(exit.signal, SIGKILL);
}

TEST_P(Outcomes, SlowButAliveRunsIntoTheTotal) {
  Attempt wanted = scripted(1, {{"outcome", "slow"}, {"step_ms", 50}});
  wanted.measure.steps = 10'000;
  wanted.deadlines.total_s = 1;
  run_one(wanted);
  EXPECT_EQ(end_of(7).cause, EndCause::kTimeout);
}

TEST_P(Outcomes, DaemonThatLeftItsGroupAndSessionIsFound) {
  run_one(scripted(2, {{"outcome", "double_fork"}}));
  EXPECT_EQ(end_of(7).cause, EndCause::kDone);
  EXPECT_TRUE(end_of(7).clean) << end_of(7).cleanup_failure;
}

TEST_P(Outcomes, DaemonThatAlsoWipedItsEnvironmentIsFound) {
  run_one(scripted(1, {{"outcome", "bare_daemon"}}));
  EXPECT_EQ(end_of(7).cause, EndCause::kDone);
  EXPECT_TRUE(end_of(7).clean) << end_of(7).cleanup_failure;
}

TEST_P(Outcomes, RankWithoutARecordHasFailed) {
  run_one(scripted(1, {{"outcome", "no_record"}}));
  EXPECT_EQ(end_of(7).cause, EndCause::kRankFailed);
  EXPECT_TRUE(records_of(7).empty());
  EXPECT_EQ(exits_of(7).at(0).exit_code, 0);
  EXPECT_FALSE(exits_of(7).at(0).log_tail.empty());
}

TEST_P(Outcomes, DamagedRecordIsSaidAndNotRelayed) {
  run_one(scripted(1, {{"outcome", "bad_record"}}));
  EXPECT_EQ(end_of(7).cause, EndCause::kRankFailed);
  EXPECT_TRUE(records_of(7).empty());
  EXPECT_FALSE(end_of(7).evidence.unreadable_records.empty());
}

TEST_P(Outcomes, LossThatIsNotFiniteTravels) {
  run_one(scripted(1, {{"outcome", "nan_loss"}}));
  ASSERT_EQ(records_of(7).size(), 1u);
  EXPECT_EQ(records_of(7)[0].outcome, Outcome::kInvalid);
}

TEST_P(Outcomes, RankThatWroteItsRecordAndDoesNotExitIsEndedAsDone) {
  Attempt wanted = scripted(1, {{"outcome", "record_then_hang"}, {"phase", "first_step"}});
  wanted.deadlines.step_s = 0.4;  // for its exit; writing the record has the first step's time
  run_one(wanted);
  EXPECT_EQ(end_of(7).cause, EndCause::kDone);
  ASSERT_EQ(records_of(7).size(), 1u);
  EXPECT_TRUE(exits_of(7).at(0).killed_by_agent);
}

TEST_P(Outcomes, HugeLogKeepsHeadAndTailWithinItsLimit) {
  Attempt wanted = scripted(1, {{"outcome", "huge_log"}, {"bytes", 64 << 20}});
  wanted.log_limit_bytes = 1 << 20;
  run_one(wanted);
  EXPECT_EQ(end_of(7).cause, EndCause::kDone);
  const auto log = must(files::read(spool::rank_log(spool::attempt_dir(spool_, 7), 0)));
  EXPECT_LE(log.size(), (1u << 20) + 200);
  EXPECT_EQ(log.find("rank 0 enters init"), 0u);
  EXPECT_NE(log.find("bytes of this log were cut here"), std::string::npos);
  EXPECT_NE(log.find("the last line\n"), std::string::npos);
  EXPECT_EQ(log.find('\0'), std::string::npos);
}

}  // namespace
}  // namespace sweep::launch
