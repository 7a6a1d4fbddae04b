// The outcome of a trial that is a command, by what its ranks reported of its steps.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "orchestrator/ingest/ingest.h"
#include "schema/codec.h"
#include "tests/support/filled_records.h"

namespace sweep::ingest {
namespace {

class CommandJudgeTest : public ::testing::Test {
 protected:
  CommandJudgeTest() {
    attempt_.id = 7, attempt_.trial.dp = 4, attempt_.trial.workload = Workload::kCommand;
    attempt_.measure = {1, 2, 1};
    AttemptEnd end;
    end.attempt = 7;
    said_.end = end;
  }

  // The ranks each did so many steps of 4 ms, of which the first is warm-up, and said this of themselves.
  void say(const std::vector<int>& steps, const std::string& effective = "{}") {
    for (std::size_t rank = 0; rank < steps.size(); ++rank) {
      RankRecord record;
      record.attempt = 7, record.rank = static_cast<i64>(rank), record.outcome = Outcome::kOk;
      record.effective = sweep::filled::read_text<EffectiveSettings>(effective);
      for (int step = 0; step < steps[rank]; ++step) {
        StepSample& sample = record.samples.emplace_back();
        sample.step = step, sample.warmup = step == 0, sample.step_ns = 4'000'000;
      }
      said_.records[record.rank] = record;
      RankExit exit;
      exit.attempt = 7, exit.rank = record.rank, exit.exit_code = 0;
      said_.exits[record.rank] = exit;
    }
  }
  RankRecord& crashed(i64 rank) {
    RankRecord& record = said_.records[rank];
    record.outcome = Outcome::kCrash, record.phase = Phase::kStep, record.ended_unix_ns = 5;
    said_.end->cause = EndCause::kRankFailed;
    return record;
  }
  Result verdict() { return judge(attempt_, said_); }
  nlohmann::json evidence() { return to_json(verdict().evidence); }

  Attempt attempt_;
  AttemptReports said_;
};

TEST_F(CommandJudgeTest, OneRankThatReportsItsStepsIsEnough) {
  say({3, 0, 0, 0});
  EXPECT_EQ(verdict().outcome, Outcome::kOk) << verdict().reason;
  EXPECT_EQ(evidence()["steps_are_of"], "1 of 4 ranks");
  say({3, 3, 3, 3});
  EXPECT_FALSE(evidence().contains("steps_are_of"));
}

TEST_F(CommandJudgeTest, WithoutATimedStepItIsNeverOk) {
  say({1, 1, 0, 0}, R"({"report":"lines","steps":1,"damaged_lines":3})");
  EXPECT_EQ(verdict().outcome, Outcome::kInvalid);
  EXPECT_EQ(evidence()["found"], (nlohmann::json{{"steps", 1}, {"damaged_lines", 12}}));
  say({0, 0, 0, 0},
      R"({"report":"none","log":{"lines":5,"matches":{"step":2,"step_ms":0,"<b>":9},"unread_bytes":-3}})");
  EXPECT_EQ(verdict().outcome, Outcome::kInvalid);
  EXPECT_EQ(evidence()["found"], (nlohmann::json{{"steps", 0},
                                                 {"damaged_lines", 0},
                                                 {"log_lines", 20},
                                                 {"unread_bytes", 0},
                                                 {"matches", {{"step", 8}, {"step_ms", 0}}}}));
}

TEST_F(CommandJudgeTest, ARehearsalNeedsItsMemoryOnly) {
  attempt_.rehearsed_ranks = {0, 1, 2, 3};
  say({1, 1, 0, 0}, R"({"steps":1})");
  for (auto& [rank, record] : said_.records) record.effective.phantom.emplace();
  EXPECT_EQ(verdict().outcome, Outcome::kInvalid);
  said_.records[2].peak_reserved_bytes = 7;
  EXPECT_EQ(verdict().outcome, Outcome::kOk) << verdict().reason;
  EXPECT_TRUE(evidence().contains("no_timings"));
}

// A program that catches each such error and goes on ends with code 0.
TEST_F(CommandJudgeTest, StepsThatAllRanOutOfMemoryAreAnOom) {
  for (const bool rehearsal : {false, true}) {
    if (rehearsal) attempt_.rehearsed_ranks = {0, 1, 2, 3};
    say({1, 1, 1, 1}, R"({"steps":1})");
    for (auto& [rank, record] : said_.records) {
      record.peak_reserved_bytes = 7;
      if (rehearsal) record.effective.phantom.emplace();
    }
    said_.records[2].ooms = 5;
    EXPECT_EQ(verdict().outcome, Outcome::kOom) << rehearsal;
    EXPECT_EQ(verdict().oom_kind, OomKind::kDevice);
    EXPECT_EQ(verdict().rank, 2);
    said_.records[0].samples.push_back(said_.records[0].samples.front());
    said_.records[0].samples.back().warmup = false;
    EXPECT_EQ(verdict().outcome, Outcome::kOk) << "one that recovered";
  }
}

TEST_F(CommandJudgeTest, WithoutATimedStepTheLossOfTheWarmUpDecidesNothing) {
  say({1, 1, 1, 1}, R"({"steps":1})");
  said_.records[1].samples.front().loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(verdict().outcome, Outcome::kInvalid);
  said_.records[2].ooms = 5;
  EXPECT_EQ(verdict().outcome, Outcome::kOom);
}

TEST_F(CommandJudgeTest, ARehearsalReadFromALogIsOkAndSaysWhyItHasNoTimes) {
  attempt_.rehearsed_ranks = {0, 1, 2, 3};
  say({0, 0, 0, 0}, R"({"report":"from_log","steps":3})");
  for (auto& [rank, record] : said_.records) record.effective.phantom.emplace();
  EXPECT_EQ(verdict().outcome, Outcome::kOk) << verdict().reason;
  EXPECT_TRUE(evidence().contains("no_timings"));
}

TEST_F(CommandJudgeTest, StepsOfOtherOptimizersAreTold) {
  say({3, 3, 3, 3}, R"({"report":"lines","steps":3,"other_steps":9})");
  EXPECT_EQ(verdict().outcome, Outcome::kOk);
  EXPECT_TRUE(evidence().contains("steps_are_of"));
}

// The memory is that of the machine that rehearses, not of the trial's nodes.
TEST_F(CommandJudgeTest, ARehearsalThatTheKernelEndsForMemoryIsInvalid) {
  say({0, 0, 0, 0});
  crashed(2);
  said_.records.erase(2);
  said_.exits[2].oom_killed = true;
  EXPECT_EQ(verdict().outcome, Outcome::kOom);
  attempt_.rehearsed_ranks = {0, 1, 2, 3};
  EXPECT_EQ(verdict().outcome, Outcome::kInvalid);
  EXPECT_EQ(verdict().rank, 2);
  EXPECT_FALSE(verdict().oom_kind);
}

TEST_F(CommandJudgeTest, TheEvidenceHasTheProgramsExitCode) {
  say({0, 0, 0, 0});
  crashed(2);
  EXPECT_FALSE(evidence().contains("exit_code")) << "of a rank that left a record with code 0";
  said_.exits[2].exit_code = 3;
  EXPECT_EQ(evidence()["exit_code"], 3);
}

// Text decides no outcome: it says how to get one.
TEST_F(CommandJudgeTest, ALogThatSpeaksOfMemoryIsACrash) {
  say({0, 0, 0, 0}, R"({"report":"none"})");
  crashed(0);
  const auto speaks = [&](const std::string& log_tail, const char* effective = R"({"report":"none"})") {
    said_.exits[0].log_tail = log_tail;
    said_.records[0].effective = sweep::filled::read_text<EffectiveSettings>(effective);
    EXPECT_EQ(verdict().outcome, Outcome::kCrash);
    return evidence().contains("log_speaks_of_memory");
  };
  EXPECT_TRUE(speaks("torch.OutOfMemoryError: CUDA out of memory. Tried"));
  EXPECT_TRUE(speaks("RuntimeError: CUDA out of memory", R"({"report":"from_log"})"));
  EXPECT_FALSE(speaks("RuntimeError: CUDA out of memory", R"({"report":"lines"})"));
  EXPECT_FALSE(speaks("a fault"));
}

}  // namespace
}  // namespace sweep::ingest
