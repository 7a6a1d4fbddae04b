// Tests what sweep-rank records, through its real processes: the same by exec and by zygote, the same bytes
// as the dry run, and the right outcome at the cap, without a peer, and for what it does not support.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "bench_kernels/shape/around_step.h"
#include "schema/codec.h"
#include "tests/parity/rank_driver.h"

namespace sweep::testing {
namespace {

using ::testing::HasSubstr;

std::vector<double> losses(const RankRecord& record) {
  std::vector<double> all;
  for (const auto& sample : record.samples) all.push_back(sample.loss);
  return all;
}

TEST(RankRecords, HaveEveryStepAndWhatWasUsed) {
  const auto records = run_by_exec(small_attempt(2));
  for (const auto& record : records) {
    EXPECT_EQ(record.outcome, Outcome::kOk) << record.message;
    EXPECT_EQ(record.attempt, 7);
    EXPECT_EQ(record.phase, Phase::kDone);
    ASSERT_EQ(record.samples.size(), 6u) << "two repeats of one warm-up and two timed steps";
    for (std::size_t i = 0; i < 6; ++i) {
      const StepSample& sample = record.samples[i];
      EXPECT_EQ(sample.repeat, static_cast<i64>(i / 3));
      EXPECT_EQ(sample.step, static_cast<i64>(i % 3));
      EXPECT_EQ(sample.warmup, i % 3 == 0);
      EXPECT_EQ(sample.tokens, 64);
      EXPECT_TRUE(sample.exposed_comm_ns);
      EXPECT_GE(sample.step_ns, sample.forward_ns + sample.backward_ns);
    }
    EXPECT_LT(record.samples.back().loss, record.samples.front().loss);
    EXPECT_GT(record.startup_ns.value_or(0), 0);
    EXPECT_GT(record.cpu_percent.value_or(0), 0);
    EXPECT_GT(record.host_peak_rss_bytes.value_or(0), 1 << 20);
    EXPECT_EQ(record.ooms, 0);
    EXPECT_FALSE(record.peak_reserved_bytes) << "the counting allocator reserves nothing";
    EXPECT_EQ(record.effective.backend, "shm");
  }
}

TEST(RankRecords, OfAPipelineOnlyTheLastStageHasALoss) {
  Attempt attempt = small_attempt(1);
  Trial& t = attempt.trial;
  t.pp = t.gpus_per_node = 2, t.grad_accum = 4, t.global_batch_size = 8;
  const auto records = run_by_exec(attempt);
  for (const auto& record : records) {
    EXPECT_EQ(record.outcome, Outcome::kOk) << record.message;
    for (const StepSample& sample : record.samples) {
      EXPECT_EQ(sample.tokens, record.rank == 1 ? 4 * 64 : 0);
      EXPECT_GT(sample.forward_ns, 0);
      EXPECT_GE(sample.step_ns, sample.forward_ns + sample.backward_ns + sample.optimizer_ns);
      EXPECT_TRUE(sample.exposed_comm_ns);
    }
  }
  EXPECT_EQ(records[0].samples.back().loss, 0);
  EXPECT_LT(records[1].samples.back().loss, records[1].samples.front().loss);
  const Output output = run_program({"dry-run", "--backend", "cpu"}, dump(to_json(t)) + "\n");
  const auto peaks = nlohmann::json::parse(output.out).at("peak_bytes").get<std::vector<i64>>();
  ASSERT_EQ(peaks.size(), 2u) << "one per stage";
  for (const auto& record : records) {
    EXPECT_EQ(*record.peak_allocated_bytes - *record.baseline_bytes,
              peaks[static_cast<std::size_t>(record.rank)]);
  }
}

TEST(RankRecords, TrafficIsThatOfOneStepHoweverManyThereAre) {
  ZygoteProcess zygote;
  Attempt attempt = small_attempt(2);
  const auto sent = [&](i64 steps) {
    attempt.measure.steps = steps;
    const RankRecord record = run_by_zygote(attempt, zygote)[0];
    i64 bytes = 0;
    for (const SentTraffic& each : record.sent) bytes += each.bytes;
    return bytes;
  };
  const i64 once = sent(1);
  EXPECT_GT(once, 0);
  EXPECT_EQ(sent(4), once);
}

TEST(RankRecords, AreTheSameByExecAndByZygote) {
  ZygoteProcess zygote;
  for (const auto& [dp, threads] : std::vector<std::pair<i64, i64>>{{1, 1}, {2, 1}, {1, 2}}) {
    Attempt attempt = small_attempt(dp);
    attempt.trial.threads = threads;
    const auto executed = run_by_exec(attempt), forked = run_by_zygote(attempt, zygote);
    for (i64 rank = 0; rank < dp; ++rank) {
      EXPECT_EQ(executed[rank].outcome, Outcome::kOk) << executed[rank].message;
      EXPECT_EQ(executed[rank].outcome, forked[rank].outcome) << forked[rank].message;
      EXPECT_EQ(losses(executed[rank]), losses(forked[rank]));
      EXPECT_EQ(executed[rank].peak_allocated_bytes, forked[rank].peak_allocated_bytes);
      EXPECT_EQ(executed[rank].baseline_bytes, forked[rank].baseline_bytes);
      EXPECT_EQ(executed[rank].effective, forked[rank].effective);
    }
  }
  EXPECT_EQ(zygote.close_and_wait(), 0);
}

TEST(RankRecords, PeakIsTheSameRunToRunAndEqualToTheDryRunToTheByteOnEveryRank) {
  ZygoteProcess zygote;
  for (const i64 dp : {1, 2, 4}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      for (const i64 micro_steps : {1, 2}) {
        Attempt attempt = small_attempt(dp);
        attempt.trial.precision = precision;
        attempt.trial.grad_accum = micro_steps;
        attempt.trial.global_batch_size *= micro_steps;
        const i64 expected = dry_run_peak(attempt.trial);
        for (int run = 0; run < 2; ++run) {
          for (const auto& record : run_by_zygote(attempt, zygote)) {
            EXPECT_EQ(record.outcome, Outcome::kOk) << record.message;
            EXPECT_EQ(record.peak_allocated_bytes, expected)
                << "dp " << dp << " " << to_string(precision) << " grad_accum " << micro_steps << " rank "
                << record.rank;
          }
        }
      }
    }
  }
}

TEST(RankRecords, ACapAtThePeakIsOkAndOneBlockLessIsOom) {
  ZygoteProcess zygote;
  Attempt attempt = small_attempt(1);
  const i64 peak = run_by_zygote(attempt, zygote)[0].peak_allocated_bytes.value();
  attempt.trial.memory_cap_bytes = peak;
  EXPECT_EQ(run_by_zygote(attempt, zygote)[0].outcome, Outcome::kOk);
  attempt.trial.memory_cap_bytes = peak - 512;
  const RankRecord record = run_by_zygote(attempt, zygote)[0];
  EXPECT_EQ(record.outcome, Outcome::kOom);
  EXPECT_EQ(record.oom_kind, OomKind::kDevice);
  EXPECT_GT(record.oom_asked_bytes.value_or(0), 0);
  EXPECT_EQ(record.ooms, 1);
  EXPECT_THAT(record.phase, ::testing::AnyOf(Phase::kFirstStep, Phase::kWarmup, Phase::kStep));
}

TEST(RankRecords, OutOfMemoryOnTwoRanksLeavesNoOtherCause) {
  ZygoteProcess zygote;
  Attempt attempt = small_attempt(2);
  const i64 peak = run_by_zygote(attempt, zygote)[0].peak_allocated_bytes.value();
  attempt.trial.memory_cap_bytes = peak - 512;
  int ooms = 0;
  for (const auto& record : run_by_zygote(attempt, zygote)) {
    ooms += record.outcome == Outcome::kOom;
    EXPECT_TRUE(record.outcome == Outcome::kOom || record.consequential) << record.message;
  }
  EXPECT_GE(ooms, 1);
}

// Bytes, and the peak where it is on the device, are those of the plan and the dry run.
TEST(RankRecords, ACheckpointHasItsBytesTimesAndPeak) {
  ZygoteProcess zygote;
  for (const CheckpointKind kind :
       {CheckpointKind::kFull, CheckpointKind::kSharded, CheckpointKind::kAsync}) {
    Attempt attempt = small_attempt(2);
    attempt.trial.checkpoint = kind, attempt.trial.zero = 3;
    const i64 peak = dry_run_peak(attempt.trial);
    i64 bytes = 0;
    for (const auto& record : run_by_zygote(attempt, zygote)) {
      EXPECT_EQ(record.outcome, Outcome::kOk) << record.message;
      EXPECT_EQ(record.phase, Phase::kDone);
      EXPECT_EQ(record.samples.size(), 6u) << "a step beside a checkpoint is no sample";
      EXPECT_EQ(record.peak_allocated_bytes, peak) << to_string(kind);
      ASSERT_TRUE(record.effective.around);
      const AroundStep& around = *record.effective.around;
      bytes += around.checkpoint_bytes.value_or(0);
      EXPECT_GT(around.checkpoint_stall_ns.value_or(0), 0);
      EXPECT_GE(around.checkpoint_ns, around.checkpoint_stall_ns);
      EXPECT_EQ(around.checkpoint_host_bytes > 0,
                kind == CheckpointKind::kAsync || (kind == CheckpointKind::kFull && record.rank == 0));
    }
    EXPECT_EQ(bytes, shape::checkpoint_bytes(attempt.trial)) << to_string(kind);
  }
}

TEST(RankRecords, LoadedWeightsHaveTheirBytesTimeAndHostMemory) {
  ZygoteProcess zygote;
  for (const WeightsLoad kind : {WeightsLoad::kRank0, WeightsLoad::kSharded}) {
    Attempt attempt = small_attempt(2);
    const auto plain = losses(run_by_zygote(attempt, zygote)[0]);
    attempt.trial.weights_load = kind;
    const i64 peak = dry_run_peak(attempt.trial);
    i64 bytes = 0;
    for (const auto& record : run_by_zygote(attempt, zygote)) {
      EXPECT_EQ(record.outcome, Outcome::kOk) << record.message;
      EXPECT_EQ(record.peak_allocated_bytes, peak);
      ASSERT_TRUE(record.effective.around);
      EXPECT_GT(record.effective.around->load_ns.value_or(0), 0);
      bytes += record.effective.around->load_bytes.value_or(0);
      if (record.rank > 0) continue;
      EXPECT_EQ(losses(record), plain);
    }
    EXPECT_EQ(bytes, shape::load_bytes(attempt.trial));
  }
}

TEST(RankRecords, RankZeroThatCannotHoldTheWeightsIsOutOfHostMemoryInThatPhase) {
  Attempt attempt = small_attempt(2);
  attempt.trial.weights_load = WeightsLoad::kRank0;
  attempt.trial.host_memory_cap_bytes = shape::load_bytes(attempt.trial) - 1;
  const RankRecord record = run_by_exec(attempt)[0];
  EXPECT_EQ(record.outcome, Outcome::kOom) << record.message;
  EXPECT_EQ(record.oom_kind, OomKind::kHost);
  EXPECT_EQ(record.phase, Phase::kLoad);
  EXPECT_EQ(record.part, "load");
  EXPECT_EQ(record.oom_asked_bytes, shape::load_bytes(attempt.trial));
}

TEST(RankRecords, AnEvaluationHasItsTimeLossAndPeak) {
  ZygoteProcess zygote;
  for (const i64 batch : {1, 2, 32}) {
    Attempt attempt = small_attempt(2);
    attempt.trial.eval_batch_size = batch, attempt.trial.eval_batches = 2;
    const i64 peak = dry_run_peak(attempt.trial);
    for (const auto& record : run_by_zygote(attempt, zygote)) {
      EXPECT_EQ(record.outcome, Outcome::kOk) << record.message;
      EXPECT_EQ(record.samples.size(), 6u);
      EXPECT_EQ(record.peak_allocated_bytes, peak) << batch;
      ASSERT_TRUE(record.effective.around);
      const AroundStep& around = *record.effective.around;
      EXPECT_GT(around.eval_ns.value_or(0), 0);
      EXPECT_EQ(around.eval_tokens, 2 * batch * 32);
      EXPECT_LT(around.eval_loss.value_or(100), record.samples.front().loss + 0.5);
      if (batch == 1) {
        EXPECT_LT(around.eval_peak_bytes, peak) << "no gradients' temporaries";
      } else if (batch == 32) {
        EXPECT_EQ(around.eval_peak_bytes, peak) << "the larger batch is the fullest moment";
      }
    }
  }
}

TEST(RankRecords, AnEvaluationThatDoesNotFitIsOutOfMemoryInThatPhase) {
  Attempt attempt = small_attempt(1);
  attempt.trial.memory_cap_bytes = dry_run_peak(attempt.trial);
  attempt.trial.eval_batch_size = 64;
  const RankRecord record = run_by_exec(attempt)[0];
  EXPECT_EQ(record.outcome, Outcome::kOom) << record.message;
  EXPECT_EQ(record.oom_kind, OomKind::kDevice);
  EXPECT_EQ(record.phase, Phase::kEvaluation);
  EXPECT_EQ(record.part, "evaluation");
  EXPECT_EQ(record.samples.size(), 6u) << "the steps were over";
}

// The kernel would end rank 0 without a word; the cap makes it an outcome with its phase and its size.
TEST(RankRecords, RankZeroThatCannotHoldTheCheckpointIsOutOfHostMemoryInThatPhase) {
  Attempt attempt = small_attempt(2);
  attempt.trial.checkpoint = CheckpointKind::kFull;
  attempt.trial.host_memory_cap_bytes = shape::checkpoint_bytes(attempt.trial) - 1;
  const auto records = run_by_exec(attempt);
  EXPECT_EQ(records[0].outcome, Outcome::kOom) << records[0].message;
  EXPECT_EQ(records[0].oom_kind, OomKind::kHost);
  EXPECT_EQ(records[0].phase, Phase::kCheckpoint);
  EXPECT_EQ(records[0].part, "checkpoint");
  EXPECT_GT(records[0].oom_asked_bytes.value_or(0), 0);
  EXPECT_EQ(records[0].samples.size(), 6u) << "the steps were over";
  ++*attempt.trial.host_memory_cap_bytes;
  for (const auto& record : run_by_exec(attempt)) EXPECT_EQ(record.outcome, Outcome::kOk) << record.message;
}

TEST(RankRecords, AFolderThatIsNotThereIsACrashOfTheCheckpointThatNamesIt) {
  Attempt attempt = small_attempt(1);
  attempt.trial.checkpoint = CheckpointKind::kSharded, attempt.checkpoint_folder = "/not/there";
  const RankRecord record = run_by_exec(attempt)[0];
  EXPECT_EQ(record.outcome, Outcome::kCrash);
  EXPECT_EQ(record.phase, Phase::kCheckpoint);
  EXPECT_THAT(record.message, HasSubstr("/not/there"));
}

class DeadPeer : public ::testing::TestWithParam<CommBackend> {};

TEST_P(DeadPeer, MakesTheSurvivorsRecordConsequential) {
  Attempt attempt = small_attempt(2);
  attempt.trial.backend = GetParam();
  attempt.measure.steps = 1'000'000;  // ends by the death, not by itself
  const AttemptFiles files(attempt);
  const pid_t survivor = start_by_exec(files.launch(0)), victim = start_by_exec(files.launch(1));
  while (files.steps_begun(1) < 3) sched_yield();
  kill(victim, SIGKILL);
  EXPECT_EQ(wait_for(survivor), 0);
  EXPECT_TRUE(WIFSIGNALED(wait_for(victim)));
  const auto record = files.record(0);
  ASSERT_TRUE(record) << files.log(0);
  EXPECT_EQ(record->outcome, Outcome::kCrash);
  EXPECT_TRUE(record->consequential) << record->message;
  EXPECT_EQ(record->phase, Phase::kStep);
  EXPECT_FALSE(files.record(1)) << "a killed rank leaves no record";
}

INSTANTIATE_TEST_SUITE_P(Backends, DeadPeer, ::testing::Values(CommBackend::kShm, CommBackend::kGloo),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(RankRecords, WhatIsNotBuiltIsUnsupportedWithItsSentence) {
  Attempt attempt = small_attempt(1);
  attempt.trial.packing = true;
  RankRecord record = run_by_exec(attempt)[0];
  EXPECT_EQ(record.outcome, Outcome::kUnsupported);
  EXPECT_THAT(record.message, HasSubstr("packing"));
  EXPECT_EQ(record.phase, Phase::kInit);
}

TEST(RankRecords, ATornAttemptFileIsACrashThatNamesTheFile) {
  const AttemptFiles files(small_attempt(1));
  const RankLaunch launch = files.launch(0);
  std::filesystem::resize_file(launch.attempt_file, 40);
  const int status = wait_for(start_by_exec(launch));
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), kNoAttempt);
  const auto record = files.record(0);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->outcome, Outcome::kCrash);
  EXPECT_THAT(record->message, HasSubstr(launch.attempt_file));
}

TEST(Zygote, AnswersNonsenseWithAnErrorAndGoesOn) {
  ZygoteProcess zygote;
  EXPECT_THAT(zygote.ask("{not json"), HasSubstr("error"));
  EXPECT_THAT(zygote.ask("[]"), HasSubstr("error"));
  EXPECT_EQ(run_by_zygote(small_attempt(1), zygote)[0].outcome, Outcome::kOk);
}

TEST(Zygote, RefusesARankWhoseAgentIsGone) {
  ZygoteProcess zygote;
  const AttemptFiles files(small_attempt(1));
  RankLaunch launch = files.launch(0);
  launch.attempt_dir += "/absent";
  EXPECT_FALSE(zygote.start(launch)) << "no log file can be opened there";
}

TEST(CommandLine, HelpIsAnAnswerAndBadInputIsTwo) {
  const Output help = run_program({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, HasSubstr("dry-run"));
  for (const auto& arguments : std::vector<std::vector<std::string>>{{},
                                                                     {"fly"},
                                                                     {"run"},
                                                                     {"run", "--launch", "{]"},
                                                                     {"run", "--launch", "[]"},
                                                                     {"dry-run", "--backend", "abacus"}}) {
    const Output output = run_program(arguments);
    EXPECT_EQ(WEXITSTATUS(output.status), 2) << ::testing::PrintToString(arguments);
    EXPECT_FALSE(output.err.empty()) << ::testing::PrintToString(arguments);
  }
}

TEST(CommandLine, DryRunNamesTheLineThatIsNoTrialAndAnswersForARefusedOne) {
  Trial refused = small_attempt(1).trial;
  refused.tp = 2;
  const Output output = run_program({"dry-run"}, dump(to_json(refused)) + "\n{\"seq_len\": \"long\"}\n");
  EXPECT_EQ(WEXITSTATUS(output.status), 2);
  EXPECT_THAT(output.err, HasSubstr("line 2"));
  EXPECT_THAT(nlohmann::json::parse(output.out).at("error").get<std::string>(), HasSubstr("tp"));
}

}  // namespace
}  // namespace sweep::testing
