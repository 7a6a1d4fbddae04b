// Records of real ranks whose evaluations compute text metrics, and whose data is read from a file.
#include <gtest/gtest.h>

#include "tests/parity/rank_driver.h"

namespace sweep::testing {
namespace {

TEST(RankRecords, TextMetricsAreThoseOfTheFirstRankOfATensorGroup) {
  for (const i64 tp : {1, 2}) {
    Attempt attempt = small_attempt(2);
    Trial& t = attempt.trial;
    t.dp = 2 / tp, t.tp = tp, t.global_batch_size = t.dp * t.micro_batch_size * t.grad_accum;
    t.eval_batch_size = 32, t.eval_metrics = EvalMetrics::kNgram;
    const i64 peak = dry_run_peak(t);
    for (const auto& record : run_by_exec(attempt)) {
      EXPECT_EQ(record.outcome, Outcome::kOk) << record.message;
      EXPECT_EQ(record.peak_allocated_bytes, peak);
      ASSERT_TRUE(record.effective.around);
      const AroundStep& around = *record.effective.around;
      EXPECT_EQ(around.eval_metrics_ns.has_value(), tp == 1 || record.rank == 0);
      EXPECT_EQ(around.eval_rouge_l.has_value(), around.eval_metrics_ns.has_value());
      EXPECT_LE(around.eval_metrics_ns.value_or(0), around.eval_ns.value_or(0)) << "it waits for them";
    }
  }
}

TEST(RankRecords, DataFromAFileHasItsWaitInEveryStep) {
  Attempt attempt = small_attempt(2);
  std::vector<RankRecord> made = run_by_exec(attempt);
  attempt.trial.data = DataSource::kText;
  const auto read = run_by_exec(attempt);
  for (std::size_t rank = 0; rank < read.size(); ++rank) {
    EXPECT_EQ(read[rank].outcome, Outcome::kOk) << read[rank].message;
    EXPECT_EQ(read[rank].peak_allocated_bytes, made[rank].peak_allocated_bytes);
    for (std::size_t i = 0; i < read[rank].samples.size(); ++i) {
      EXPECT_FALSE(made[rank].samples[i].data_ns);
      EXPECT_GT(read[rank].samples[i].data_ns.value_or(0), 0);
      EXPECT_EQ(read[rank].samples[i].loss, made[rank].samples[i].loss);
    }
  }
}

}  // namespace
}  // namespace sweep::testing
