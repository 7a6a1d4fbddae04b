// Verdicts: who is the cause, and when is a number wrong.
#include <gmock/gmock.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>

#include "orchestrator/ingest/ingest.h"
#include "tests/support/filled_records.h"

namespace sweep::ingest {
namespace {

using ::testing::HasSubstr;

constexpr i64 kNow = 1'700'000'000'000'000'000;

class JudgeTest : public ::testing::Test {
 protected:
  JudgeTest() {
    attempt_.id = 7, attempt_.trial_id = "abc", attempt_.trial.dp = 4;
    end(EndCause::kDone);
    for (i64 rank = 0; rank < 4; ++rank) ok(rank);
  }

  void end(EndCause cause, const std::string& evidence = "{}") {
    AttemptEnd& e = t_.end.emplace();
    e.attempt = 7, e.cause = cause, e.ended_unix_ns = kNow + 1000;
    e.evidence = sweep::filled::read_text<AgentEvidence>(evidence);
  }
  RankRecord& ok(i64 rank) {
    RankRecord r;
    r.attempt = 7, r.rank = rank, r.outcome = Outcome::kOk, r.phase = Phase::kDone, r.ended_unix_ns = kNow;
    for (i64 step = 0; step < 3; ++step) {
      StepSample s;
      s.step = step, s.warmup = step == 0, s.step_ns = 4'000'000;
      s.loss = 5.0 - 0.1 * static_cast<double>(step);
      r.samples.push_back(s);
    }
    RankExit e;
    e.attempt = 7, e.rank = rank, e.exit_code = 0, e.ended_unix_ns = kNow + 1;
    t_.exits[rank] = e;
    return t_.records[rank] = r;
  }
  RankRecord& failed(i64 rank, Outcome outcome, i64 when, bool consequential = false) {
    RankRecord& r = t_.records[rank];
    r.samples.clear();
    r.rank = rank, r.outcome = outcome, r.ended_unix_ns = kNow + when, r.consequential = consequential;
    r.phase = Phase::kStep, r.message = "said rank " + std::to_string(rank);
    end(EndCause::kRankFailed);
    return r;
  }
  // The rank's process ended without a record.
  RankExit& silent(i64 rank, i64 when) {
    t_.records.erase(rank);
    RankExit& e = t_.exits[rank];
    e = RankExit{};
    e.attempt = 7, e.rank = rank, e.ended_unix_ns = kNow + when;
    end(EndCause::kRankFailed);
    return e;
  }
  Result verdict() { return judge(attempt_, t_); }
  nlohmann::json evidence() { return to_json(verdict().evidence); }

  Attempt attempt_;
  AttemptReports t_;
};

TEST_F(JudgeTest, AllRanksOkAndAFallingLossIsOk) {
  const Result r = verdict();
  EXPECT_EQ(r.outcome, Outcome::kOk) << r.reason;
  EXPECT_EQ(r.reason, "");
  EXPECT_EQ(r.attempt, 7);
  EXPECT_EQ(r.trial_id, "abc");
  EXPECT_EQ(r.finished_unix_ns, kNow + 1000);
  EXPECT_EQ(r.metrics, Metrics{});
}

TEST_F(JudgeTest, TheEarliestFailureIsTheCause) {
  failed(3, Outcome::kCrash, 50);
  RankRecord& first = failed(2, Outcome::kOom, 20);
  first.oom_asked_bytes = 96 << 20, first.phase = Phase::kFirstStep;
  failed(0, Outcome::kCrash, 30);
  const Result r = verdict();
  EXPECT_EQ(r.outcome, Outcome::kOom);
  EXPECT_EQ(r.oom_kind, OomKind::kDevice);
  EXPECT_EQ(r.rank, 2);
  EXPECT_EQ(r.phase, Phase::kFirstStep);
  EXPECT_EQ(r.metrics.oom_asked_bytes, 96 << 20);
  EXPECT_EQ(r.reason,
            "rank 2 ran out of device memory (asked for 96.0 MiB): said rank 2 (in phase first_step)");
}

TEST_F(JudgeTest, ConsequencesOnOtherRanksAreNotTheCause) {
  failed(0, Outcome::kCrash, 10, true);  // a clock that is ahead, or a peer that noticed first
  failed(1, Outcome::kOom, 20);
  EXPECT_EQ(verdict().outcome, Outcome::kOom);
  EXPECT_EQ(verdict().rank, 1);
}

TEST_F(JudgeTest, AmongConsequencesAloneTheEarliestIsTheCause) {
  failed(0, Outcome::kCrash, 20, true);
  failed(1, Outcome::kCrash, 10, true);
  const Result r = verdict();
  EXPECT_EQ(r.outcome, Outcome::kCrash);
  EXPECT_EQ(r.rank, 1);
  EXPECT_THAT(r.reason, HasSubstr("lost its peers"));
}

TEST_F(JudgeTest, AKernelKillForMemoryIsAHostOom) {
  RankExit& e = silent(1, 5);
  e.signal = SIGKILL, e.oom_killed = true;
  failed(0, Outcome::kCrash, 9, true);
  const Result r = verdict();
  EXPECT_EQ(r.outcome, Outcome::kOom);
  EXPECT_EQ(r.oom_kind, OomKind::kHost);
  EXPECT_EQ(r.rank, 1);
}

TEST_F(JudgeTest, ARankThatCaughtHostMemoryExhaustionIsAHostOom) {
  failed(1, Outcome::kOom, 5).oom_kind = OomKind::kHost;
  EXPECT_EQ(verdict().oom_kind, OomKind::kHost);
}

TEST_F(JudgeTest, AKillWithoutMemoryEvidenceIsACrashWithItsSignal) {
  silent(1, 5).signal = SIGKILL;
  const Result r = verdict();
  EXPECT_EQ(r.outcome, Outcome::kCrash);
  EXPECT_FALSE(r.oom_kind);
  EXPECT_THAT(r.reason, HasSubstr("SIGKILL"));
}

TEST_F(JudgeTest, TheAgentsOwnKillsAreNeverTheCause) {
  RankExit& killed = silent(0, 1);
  killed.signal = SIGKILL, killed.killed_by_agent = true;
  silent(2, 30).signal = SIGSEGV;
  const Result r = verdict();
  EXPECT_EQ(r.rank, 2);
  EXPECT_THAT(r.reason, HasSubstr("SIGSEGV"));
}

TEST_F(JudgeTest, AnExitWithoutARecordIsACrash) {
  silent(3, 5).exit_code = 0;
  EXPECT_EQ(verdict().outcome, Outcome::kCrash);
  EXPECT_EQ(verdict().rank, 3);
}

TEST_F(JudgeTest, AMissingRankIsACrash) {
  t_.records.erase(2);
  t_.exits.erase(2);
  EXPECT_EQ(verdict().outcome, Outcome::kCrash);
  EXPECT_EQ(verdict().rank, 2);
}

TEST_F(JudgeTest, NoRecordAtAllIsACrash) {
  t_.records.clear();
  t_.exits.clear();
  EXPECT_EQ(verdict().outcome, Outcome::kCrash);
}

TEST_F(JudgeTest, WithoutAClosingWordTheNodeIsLost) {
  t_.end.reset();
  EXPECT_EQ(verdict().outcome, Outcome::kNodeLost);
}

TEST_F(JudgeTest, ACrashAfterTheRecordDoesNotUndoTheMeasurement) {
  t_.exits[1].exit_code.reset();
  t_.exits[1].signal = SIGSEGV;
  EXPECT_EQ(verdict().outcome, Outcome::kOk);
}

TEST_F(JudgeTest, HangTimeoutAndCancelAreTheAgentsWord) {
  for (i64 rank = 0; rank < 4; ++rank) {
    RankExit& e = silent(rank, 5);
    e.signal = SIGKILL, e.killed_by_agent = true;
  }
  end(EndCause::kHang,
      R"({"rank": 3, "why": "rank 3 made no progress for 60 s", "ranks": [{"rank": 3, "phase": "first_step"}]})");
  Result r = verdict();
  EXPECT_EQ(r.outcome, Outcome::kHang);
  EXPECT_EQ(r.rank, 3);
  EXPECT_EQ(r.phase, Phase::kFirstStep);
  EXPECT_EQ(r.reason, "rank 3 made no progress for 60 s (in phase first_step)");
  EXPECT_EQ(evidence()["hang"]["rank"], 3);
  end(EndCause::kTimeout);
  EXPECT_EQ(verdict().outcome, Outcome::kTimeout);
  end(EndCause::kCancelled);
  EXPECT_EQ(verdict().outcome, Outcome::kCancelled);
  end(EndCause::kAgentStopping);
  EXPECT_EQ(verdict().outcome, Outcome::kCancelled);
  end(EndCause::kStartFailed, R"({"why": "sweep-rank was not found"})");
  EXPECT_EQ(verdict().outcome, Outcome::kCrash);
}

TEST_F(JudgeTest, ACrashKeepsWhereTheRanksWere) {
  RankExit& e = silent(2, 5);
  e.signal = SIGKILL;
  end(EndCause::kRankFailed, R"({"ranks": [{"rank": 2, "last_collective": "all_reduce 7 of tp"}]})");
  EXPECT_EQ(verdict().outcome, Outcome::kCrash);
  EXPECT_EQ(evidence()["ranks"][0]["last_collective"], "all_reduce 7 of tp");
  EXPECT_FALSE(evidence().contains("hang"));
}

TEST_F(JudgeTest, AProgramThatCannotBeStartedIsACrashInPhaseStart) {
  t_.records.clear();
  t_.exits.clear();
  end(EndCause::kStartFailed, R"({"why": "sweep-rank was not found"})");
  const Result r = verdict();
  EXPECT_EQ(r.outcome, Outcome::kCrash);
  EXPECT_EQ(r.phase, Phase::kStart);
  EXPECT_THAT(r.reason, HasSubstr("sweep-rank was not found"));
}

TEST_F(JudgeTest, ARankThatRanOutOfMemoryExplainsItsPeersHang) {
  failed(1, Outcome::kOom, 5);
  end(EndCause::kHang);
  EXPECT_EQ(verdict().outcome, Outcome::kOom);
  failed(1, Outcome::kCrash, 5);
  end(EndCause::kHang);
  EXPECT_EQ(verdict().outcome, Outcome::kHang);
}

TEST_F(JudgeTest, CancelledWinsOverErrorsOfRanksThatAreBeingEnded) {
  failed(1, Outcome::kOom, 5);
  end(EndCause::kCancelled);
  EXPECT_EQ(verdict().outcome, Outcome::kCancelled);
}

TEST_F(JudgeTest, UnsupportedIsUnsupported) {
  failed(0, Outcome::kUnsupported, 5).message = "flash attention needs a GPU";
  const Result r = verdict();
  EXPECT_EQ(r.outcome, Outcome::kUnsupported);
  EXPECT_THAT(r.reason, HasSubstr("flash attention needs a GPU"));
}

TEST_F(JudgeTest, ALossThatIsNotFiniteIsInvalid) {
  t_.records[2].samples[1].loss = std::nan("");
  EXPECT_EQ(verdict().outcome, Outcome::kInvalid);
  EXPECT_EQ(verdict().rank, 2);
}

TEST_F(JudgeTest, ALossThatRisesIsInvalidBeyondTheTolerance) {
  const auto last = [this](double loss) {
    for (auto& [rank, record] : t_.records) record.samples.back().loss = loss;
    return verdict().outcome;
  };
  EXPECT_EQ(last(5.0), Outcome::kOk) << "flat is not rising";
  EXPECT_EQ(last(5.004), Outcome::kOk);
  EXPECT_EQ(last(5.009), Outcome::kOk) << "rounding, whatever the size of the loss";
  EXPECT_EQ(last(5.011), Outcome::kInvalid);
  attempt_.trial.precision = Precision::kBf16;
  EXPECT_EQ(last(5.04), Outcome::kOk);
  EXPECT_EQ(last(5.06), Outcome::kInvalid);
}

TEST_F(JudgeTest, TheLossOfTheFirstRepeatAloneIsJudged) {
  for (auto& [rank, record] : t_.records) {
    const auto first = record.samples;
    for (StepSample sample : first) {
      sample.repeat = 1,
      sample.loss = 0.001 * static_cast<double>(1 + sample.step);  // learnt by heart: it wanders
      record.samples.push_back(sample);
    }
  }
  EXPECT_EQ(verdict().outcome, Outcome::kOk);
  for (auto& [rank, record] : t_.records) record.samples.back().loss = 3;
  EXPECT_EQ(verdict().outcome, Outcome::kOk);
  for (auto& [rank, record] : t_.records) {
    for (StepSample& sample : record.samples)
      if (sample.repeat == 0) sample.loss = 5 + static_cast<double>(sample.step);
  }
  EXPECT_EQ(verdict().outcome, Outcome::kInvalid);
}

TEST_F(JudgeTest, TheLossOfACommandMayRiseForItsBatchesDiffer) {
  for (auto& [rank, record] : t_.records) record.samples.back().loss = 9;
  EXPECT_EQ(verdict().outcome, Outcome::kInvalid);
  attempt_.trial.workload = Workload::kCommand;
  EXPECT_EQ(verdict().outcome, Outcome::kOk);
  t_.records[1].samples.back().loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(verdict().outcome, Outcome::kInvalid);
}

TEST_F(JudgeTest, TheLossIsJudgedOverAllRanks) {
  t_.records[0].samples.back().loss = 5.05;  // its share of the batch alone rose
  EXPECT_EQ(verdict().outcome, Outcome::kOk);
}

TEST_F(JudgeTest, OkWithoutOneStepIsInvalid) {
  for (auto& [rank, record] : t_.records) record.samples.clear();
  EXPECT_EQ(verdict().outcome, Outcome::kInvalid);
}

TEST_F(JudgeTest, StampsThatJumpedBackOrAreUnsetDoNotDecide) {
  failed(0, Outcome::kCrash, 0).ended_unix_ns = 0;
  failed(1, Outcome::kCrash, 0).ended_unix_ns = std::numeric_limits<i64>::min();
  failed(2, Outcome::kOom, 500);
  EXPECT_EQ(verdict().rank, 2);
  t_.end->ended_unix_ns = -5;
  EXPECT_GT(verdict().finished_unix_ns, 0);
}

TEST_F(JudgeTest, RanksOutOfTheWorldAreIgnored) {
  failed(4, Outcome::kOom, 1);
  failed(-1, Outcome::kOom, 1);
  end(EndCause::kDone);
  EXPECT_EQ(verdict().outcome, Outcome::kOk);
}

TEST_F(JudgeTest, TheOrderInWhichRecordsArriveDoesNotMatter) {
  failed(2, Outcome::kOom, 20);
  silent(1, 10).signal = SIGBUS;
  const Result before = verdict();
  AttemptReports again;
  again.end = t_.end;
  for (auto it = t_.exits.rbegin(); it != t_.exits.rend(); ++it) again.exits.insert(*it);
  for (auto it = t_.records.rbegin(); it != t_.records.rend(); ++it) again.records.insert(*it);
  EXPECT_EQ(judge(attempt_, again).reason, before.reason);
  EXPECT_EQ(before.rank, 1);
}

TEST_F(JudgeTest, EvidenceHoldsTheCausesLogTailBoundedAndAsText) {
  RankExit& e = silent(1, 10);
  e.signal = SIGABRT;
  e.log_tail = std::string(1 << 20, 'x') + "\xff\xfe the end";
  end(EndCause::kRankFailed);
  const Evidence said = verdict().evidence;
  EXPECT_EQ(said.cause_rank, 1);
  EXPECT_EQ(said.signal, "SIGABRT");
  EXPECT_LT(said.log_tail.size(), 10000u);
  EXPECT_THAT(said.log_tail, HasSubstr("the end"));
}

TEST_F(JudgeTest, AnOomSaysWhatWasGoingOn) {
  RankRecord& record = failed(1, Outcome::kOom, 5);
  record.oom_kind = OomKind::kDevice, record.part = "backward", record.oom_asked_bytes = 1 << 20;
  const Result r = verdict();
  EXPECT_EQ(r.metrics.oom_part, "backward");
  EXPECT_THAT(r.reason, HasSubstr("in backward (asked for 1.0 MiB)"));
}

TEST_F(JudgeTest, ARehearsalNeedsTheRanksThatItStartedAndNoLoss) {
  attempt_.trial.dp = 8, attempt_.trial.pp = 2;
  attempt_.rehearsed_ranks = {0, 8};
  t_.records.clear(), t_.exits.clear();
  ok(0);
  ok(8).samples[1].loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(verdict().outcome, Outcome::kOk);
  t_.records.erase(8);
  EXPECT_EQ(verdict().outcome, Outcome::kCrash);
  EXPECT_EQ(verdict().rank, 8);
}

TEST_F(JudgeTest, AGpuThatFailedIsTheMachinesFault) {
  failed(3, Outcome::kCrash, 10).phase = Phase::kWarmup;
  failed(1, Outcome::kCrash, 20, true).phase = Phase::kStep;
  t_.end->gpu_errors = {{"n1", "GPU-aa", 1, 79}};
  const Result r = verdict();
  EXPECT_EQ(r.outcome, Outcome::kNodeLost);
  EXPECT_EQ(r.rank, 1);
  EXPECT_EQ(r.phase, Phase::kStep);
  EXPECT_EQ(r.reason,
            "GPU GPU-aa of n1 (rank 1) reported Xid 79: the GPU has fallen off the bus (in phase step)");
  EXPECT_EQ(evidence()["gpu_errors"].size(), 1u);
}

TEST_F(JudgeTest, AHangAfterAGpuErrorIsAnInfrastructureFailure) {
  end(EndCause::kHang,
      R"({"why": "rank 0 made no progress", "rank": 0, "ranks": [{"rank": 0, "phase": "step"}]})");
  t_.end->gpu_errors = {{"n1", "GPU-aa", std::nullopt, 95}};
  EXPECT_EQ(verdict().outcome, Outcome::kNodeLost);
  EXPECT_EQ(verdict().rank, 0);
}

TEST_F(JudgeTest, AnXidCausedByTheProgramExplainsItsCrash) {
  failed(2, Outcome::kCrash, 10);
  t_.end->gpu_errors = {{"n1", "GPU-aa", 1, 13}, {"n1", "GPU-bb", 2, 31}};
  const Result r = verdict();
  EXPECT_EQ(r.outcome, Outcome::kCrash);
  EXPECT_EQ(r.rank, 2);
  EXPECT_NE(r.reason.find("GPU GPU-bb of n1 (rank 2) reported Xid 31"), std::string::npos) << r.reason;
  EXPECT_EQ(r.reason.find("GPU-aa"), std::string::npos) << r.reason;
}

TEST_F(JudgeTest, AGpuErrorDoesNotChangeAnUnrelatedOutcome) {
  failed(2, Outcome::kOom, 10).oom_kind = OomKind::kDevice;
  t_.end->gpu_errors = {{"n1", "GPU-aa", 2, 48}};
  EXPECT_EQ(verdict().outcome, Outcome::kOom);
}

TEST_F(JudgeTest, AnXidThatStopsNothingIsKeptAsEvidence) {
  t_.end->gpu_errors = {{"n1", "GPU-aa", 0, 63}};
  EXPECT_EQ(verdict().outcome, Outcome::kOk);
  EXPECT_EQ(evidence()["gpu_errors"][0],
            "GPU GPU-aa of n1 (rank 0) reported Xid 63: a faulty row of memory was remapped");
}

}  // namespace
}  // namespace sweep::ingest
