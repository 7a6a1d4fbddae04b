// Figures of a command, of which some ranks alone reported steps.
#include <gtest/gtest.h>

#include "orchestrator/metrics/derive.h"
#include "orchestrator/metrics/steps.h"

namespace sweep::metrics {
namespace {

RankRecord reporting(i64 rank, std::initializer_list<i64> milliseconds) {
  RankRecord out;
  out.rank = rank;
  for (const i64 ms : milliseconds) {
    StepSample& sample = out.samples.emplace_back();
    sample.step = static_cast<i64>(out.samples.size()) - 1;
    sample.step_ns = ms * 1'000'000, sample.tokens = 100;
  }
  return out;
}

Trial two_ranks() {
  Trial out;
  out.dp = 2, out.hardware = "cpu", out.workload = Workload::kCommand;
  return out;
}

TEST(CommandMetrics, AStepCountsIfOneRankReportedIt) {
  EXPECT_EQ(ranks_needed(Trial{}, 8), 8);
  EXPECT_EQ(ranks_needed(two_ranks(), 8), 1);
  const std::vector<RankRecord> records{reporting(0, {8, 8, 8}), reporting(1, {9, 9})};
  const auto steps = whole_steps(records, 1);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[1].step_ns, 9'000'000);
  EXPECT_EQ(steps[2].step_ns, 8'000'000);
}

TEST(CommandMetrics, FiguresAreThoseOfTheRanksThatReported) {
  std::vector<RankRecord> records{reporting(0, {10, 30}), reporting(1, {})};
  Metrics m = derive(two_ranks(), records, nullptr);
  EXPECT_DOUBLE_EQ(m.step_ms.value_or(0), 20);
  EXPECT_EQ(m.timed_steps, 2);
  EXPECT_EQ(m.ranks_reported, 1);
  EXPECT_FALSE(m.tokens_per_s) << "of the other rank's tokens nothing is known";
  records[0].effective.report = "from_log";
  EXPECT_DOUBLE_EQ(derive(two_ranks(), records, nullptr).tokens_per_s.value_or(0), 200 / 0.02);
  records[0].effective.report.clear();
  records[1] = reporting(1, {10, 30});
  m = derive(two_ranks(), records, nullptr);
  EXPECT_DOUBLE_EQ(m.tokens_per_s.value_or(0), 200 / 0.02);
  EXPECT_EQ(m.ranks_reported, 2);
}

TEST(CommandMetrics, TokensFollowFromTheAxesThatItsGridStates) {
  Trial t = two_ranks();
  t.micro_batch_size = 4, t.global_batch_size = 8, t.seq_len = 100;
  std::vector<RankRecord> records{reporting(0, {20}), reporting(1, {20})};
  for (RankRecord& record : records) record.samples[0].tokens = 0;
  EXPECT_FALSE(derive(t, records, nullptr).tokens_per_s) << "nobody said what a step has";
  t.labels = R"({"@axes":" micro_batch_size "})";
  EXPECT_FALSE(derive(t, records, nullptr).tokens_per_s);
  t.labels = R"({"@axes":" micro_batch_size seq_len "})";
  EXPECT_DOUBLE_EQ(derive(t, records, nullptr).tokens_per_s.value_or(0), 800 / 0.02);
}

TEST(CommandMetrics, ALossNeedsNoTokens) {
  std::vector<RankRecord> records{reporting(0, {10, 30}), reporting(1, {10, 30})};
  for (RankRecord& record : records)
    for (StepSample& sample : record.samples) sample.tokens = 0, sample.loss = record.rank == 0 ? 3 : 5;
  EXPECT_DOUBLE_EQ(derive(two_ranks(), records, nullptr).loss_last.value_or(0), 4);
  records[1].samples.clear();
  EXPECT_DOUBLE_EQ(derive(two_ranks(), records, nullptr).loss_first.value_or(0), 3);
}

TEST(CommandMetrics, TokensWithoutALossMakeNone) {
  const std::vector<RankRecord> records{reporting(0, {10}), reporting(1, {10})};
  EXPECT_FALSE(derive(two_ranks(), records, nullptr).loss_first);
  EXPECT_FALSE(whole_steps(records, 1).at(0).loss);
}

}  // namespace
}  // namespace sweep::metrics
