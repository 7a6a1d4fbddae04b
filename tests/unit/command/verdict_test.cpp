#include "worker/command/verdict.h"

#include <gtest/gtest.h>

#include <string>

namespace sweep::command {
namespace {

// One step for warm-up, two timed ones.
Attempt attempt() {
  Attempt out;
  out.measure = {1, 2, 1};
  return out;
}

std::string steps(int last) {
  std::string out = "{\"kind\":\"hello\"}\n";
  for (int i = 1; i <= last; ++i) out += "{\"kind\":\"step\",\"step\":" + std::to_string(i) + ",\"ms\":4}\n";
  return out;
}

ProgramEnd with_code(int code) {
  ProgramEnd out;
  out.end.exit_code = code;
  return out;
}

RankRecord concluded(const std::string& said, const ProgramEnd& end) {
  TrainerReport report;
  report.feed(said);
  RankRecord record;
  conclude(record, attempt(), report, end);
  return record;
}

TEST(CommandVerdict, StepsBeyondThePlanAreNoSamples) {
  const auto record = concluded(steps(9), with_code(0));
  EXPECT_EQ(record.outcome, Outcome::kOk);
  ASSERT_EQ(record.samples.size(), 3u);
  EXPECT_TRUE(record.samples[0].warmup);
  EXPECT_FALSE(record.samples[1].warmup);
  EXPECT_EQ(record.samples[2].step_ns, 4'000'000);
}

TEST(CommandVerdict, ATrainerThatReportsNothingIsJudgedByItsExit) {
  EXPECT_EQ(concluded("", with_code(0)).outcome, Outcome::kOk);
  EXPECT_TRUE(concluded("", with_code(0)).samples.empty());
  EXPECT_EQ(concluded("", with_code(3)).outcome, Outcome::kCrash);
}

// Whether some rank timed a step is seen by ingest, which has the records of all of them.
TEST(CommandVerdict, TooFewStepsAreNoCrash) {
  const auto record =
      concluded(steps(1) + R"({"kind":"memory","peak_reserved_bytes":7})" + "\n", with_code(0));
  EXPECT_EQ(record.outcome, Outcome::kOk);
  ASSERT_EQ(record.samples.size(), 1u);
  EXPECT_TRUE(record.samples[0].warmup);
  EXPECT_EQ(record.peak_reserved_bytes, 7);
}

TEST(CommandVerdict, AProgramOfOtherRanksThanTheTrialsIsInvalid) {
  const auto outcome = [](int world) {
    return concluded(steps(3) + R"({"kind":"hello","world":)" + std::to_string(world) + "}\n", with_code(0))
        .outcome;
  };
  EXPECT_EQ(outcome(1), Outcome::kOk);
  EXPECT_EQ(outcome(2), Outcome::kInvalid);
}

TEST(CommandVerdict, ALogsMeanIsOneTimedStep) {
  TrainerReport report;
  TrainerStep mean;
  mean.ms = 61.5;
  report.set_logged_run(mean, i64{9});
  EXPECT_TRUE(report.is_from_log());
  RankRecord record;
  conclude(record, attempt(), report, with_code(0));
  ASSERT_EQ(record.samples.size(), 1u);
  EXPECT_FALSE(record.samples[0].warmup);
  EXPECT_EQ(record.samples[0].step_ns, 61'500'000);
  EXPECT_EQ(record.peak_reserved_bytes, 9);
}

// The clock of the machine that rehearses is none of a phantom GPU's.
TEST(CommandVerdict, InARehearsalTheLogTimesNothing) {
  TrainerReport report;
  TrainerStep logged;
  for (logged.number = 1, logged.ms = 9; logged.number <= 3; ++logged.number) report.add_logged(logged);
  Attempt rehearsal = attempt();
  rehearsal.rehearsed_ranks = {0};
  RankRecord record;
  conclude(record, rehearsal, report, with_code(0));
  EXPECT_EQ(record.outcome, Outcome::kOk);
  EXPECT_TRUE(record.samples.empty());
  report.feed(steps(3));
  conclude(record, rehearsal, report, with_code(0));
  EXPECT_EQ(record.samples.size(), 3u);
}

TEST(CommandVerdict, ReportedStepsReplaceThoseOfTheLog) {
  TrainerReport report;
  TrainerStep logged;
  for (logged.number = 1, logged.ms = 9; logged.number <= 3; ++logged.number) report.add_logged(logged);
  EXPECT_TRUE(report.is_from_log());
  EXPECT_EQ(report.last_step(), 3);
  report.feed(steps(1));
  logged.number = 8;
  report.add_logged(logged);
  EXPECT_FALSE(report.is_from_log());
  EXPECT_EQ(report.last_step(), 1);
}

TEST(CommandVerdict, AnErrorHasThePhaseItHappenedIn) {
  const std::string oom = R"({"kind":"error","outcome":"oom","oom":"device"})"
                          "\n",
                    end = "{\"kind\":\"end\"}\n";
  EXPECT_EQ(concluded(steps(2) + oom + end, with_code(1)).phase, Phase::kStep);
  EXPECT_EQ(concluded(oom, with_code(1)).phase, Phase::kInit);
  EXPECT_EQ(concluded(steps(3) + end + oom, with_code(1)).phase, Phase::kReport);
}

// A launcher ends with a code of its own; which of its processes was killed only their end shows.
TEST(CommandVerdict, ARankWhoseProcessVanishedFailedByItself) {
  ProgramEnd end = with_code(1);
  end.own = false, end.launches_others = true, end.vanished_unix_ns = 77;
  const auto record = concluded(steps(1), end);
  EXPECT_EQ(record.outcome, Outcome::kCrash);
  EXPECT_FALSE(record.consequential);
  EXPECT_EQ(record.ended_unix_ns, 77);
  EXPECT_EQ(record.phase, Phase::kStep);
}

TEST(CommandVerdict, TheTrainersOwnErrorCountsMoreThanItsExitCode) {
  const std::string oom = steps(2) + R"({"kind":"error","outcome":"oom","oom":"host"})" + "\n";
  for (const int code : {0, 1}) {
    const auto record = concluded(oom, with_code(code));
    EXPECT_EQ(record.outcome, Outcome::kOom);
    EXPECT_EQ(record.oom_kind, OomKind::kHost);
  }
}

TEST(CommandVerdict, TheTimeOfAFailureIsTheTrainersWhereItCanBe) {
  TrainerError error;
  EXPECT_EQ(failed_at(error, 100, 200), 200);
  error.unix_ns = 150;
  EXPECT_EQ(failed_at(error, 100, 200), 150);
  for (const i64 impossible : {i64{0}, i64{99}, i64{201}}) {
    error.unix_ns = impossible;
    EXPECT_EQ(failed_at(error, 100, 200), 200) << impossible;
  }
}

TEST(CommandVerdict, AnErrorAfterWeStoppedItIsOurOwnDoing) {
  ProgramEnd end;
  end.end.signal = 9;
  end.stopped = true;
  EXPECT_EQ(concluded(steps(9) + "{\"kind\":\"error\",\"outcome\":\"crash\"}\n", end).outcome, Outcome::kOk);
}

TEST(CommandVerdict, OfANodesCommandTheRankThatKnowsNothingIsNotTheCause) {
  ProgramEnd end = with_code(1);
  end.own = false;
  EXPECT_TRUE(concluded(steps(1), end).consequential);
  EXPECT_FALSE(concluded(steps(1), with_code(1)).consequential);
}

TEST(CommandVerdict, ASignalAfterACompleteRunTakesNothingBack) {
  ProgramEnd aborted;
  aborted.end.signal = 6;
  EXPECT_EQ(concluded(steps(3) + "{\"kind\":\"end\"}\n", aborted).outcome, Outcome::kOk);
  EXPECT_EQ(concluded(steps(2) + "{\"kind\":\"end\"}\n", aborted).outcome, Outcome::kCrash);
  EXPECT_EQ(concluded(steps(3), aborted).outcome, Outcome::kCrash);
}

TEST(CommandVerdict, PhasesFollowTheSteps) {
  const auto phase = [](const std::string& said) {
    TrainerReport report;
    report.feed(said);
    return phase_of(report, attempt().measure);
  };
  EXPECT_EQ(phase(""), Phase::kInit);
  EXPECT_EQ(phase("{\"kind\":\"phase\",\"phase\":\"first_step\"}\n"), Phase::kFirstStep);
  EXPECT_EQ(phase(steps(1)), Phase::kStep);
  EXPECT_EQ(phase(steps(3) + "{\"kind\":\"end\"}\n"), Phase::kReport);
}

// torchrun ends with a code of its own when one of its processes was aborted after a complete run.
TEST(CommandVerdict, ALaunchersExitAfterACompleteRunTakesNoMeasurementBack) {
  const auto outcome = [](const std::string& said, ProgramEnd end) {
    end.launches_others = true;
    return concluded(said, end).outcome;
  };
  const std::string end_line = "{\"kind\":\"end\"}\n";
  for (const bool own : {true, false}) {
    ProgramEnd code = with_code(1), aborted;
    aborted.end.signal = 6;
    code.own = aborted.own = own;
    EXPECT_EQ(outcome(steps(3) + end_line, code), Outcome::kOk) << own;
    EXPECT_EQ(outcome(steps(3) + end_line, aborted), Outcome::kOk) << own;
    EXPECT_EQ(outcome(steps(2) + end_line, code), Outcome::kCrash) << own;
    EXPECT_EQ(outcome(steps(3), aborted), Outcome::kCrash) << own;
  }
}

}  // namespace
}  // namespace sweep::command
