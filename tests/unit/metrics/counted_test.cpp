// Metrics that only phantom GPUs can count.
#include "orchestrator/metrics/counted.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "orchestrator/metrics/derive.h"
#include "schema/codec.h"
#include "tests/support/filled_records.h"

namespace sweep::metrics {
namespace {

std::vector<RankRecord> of_two_ranks() {
  std::vector<RankRecord> out(2);
  out[1].rank = 1;
  return out;
}

EffectiveSettings counted(i64 launches, i64 syncs, i64 host_ns, i64 device_ns, i64 busy_ns) {
  EffectiveSettings out;
  PhantomUse& phantom = out.phantom.emplace();
  phantom.peak_pinned_bytes = 7 * launches;
  PhantomCounts& step = phantom.step.emplace();
  step.launches = launches, step.host_syncs = syncs, step.host_work_ns = host_ns;
  step.device_ns = device_ns, step.busy_ns = busy_ns;
  return out;
}

TEST(Counted, WhatPhantomGpusCountedIsOfTheRankThatHasMost) {
  std::vector<RankRecord> records = of_two_ranks();
  records[0].effective = counted(100, 3, 2'000'000, 1000, 500);
  records[1].effective = counted(120, 2, 1'000'000, 1000, 100);
  AttemptEnd end;
  end.util_mean = 99, end.util_sd = 1;
  const Metrics m = derive(Trial(), records, &end);
  EXPECT_EQ(m.step_launches, 120);
  EXPECT_EQ(m.step_host_syncs, 3);
  EXPECT_DOUBLE_EQ(*m.step_host_ms, 2);
  EXPECT_EQ(m.pinned_bytes, 840);
  EXPECT_DOUBLE_EQ(*m.util_mean, 30);
  EXPECT_FALSE(m.util_sd);
}

// Counts of a built-in step hold for one step; a command's steps are not told apart, so its counts hold for the run.
TEST(Counted, WhatNoTableHoldsIsGuessed) {
  std::vector<RankRecord> records = of_two_ranks();
  records[0].effective = counted(100, 3, 2'000'000, 1000, 500);
  PhantomCounts& step = *records[0].effective.phantom->step;
  step.kernel_ns = 1000, step.tabled_ns = 500, step.scaled_ns = 250;
  EXPECT_DOUBLE_EQ(*derive(Trial(), records, nullptr).step_guessed_share, 0.25);
  PhantomUse& whole = records[1].effective.phantom.emplace();
  whole.kernel_ns = 1000, whole.tabled_ns = 100, whole.scaled_ns = 0;
  EXPECT_DOUBLE_EQ(*derive(Trial(), records, nullptr).step_guessed_share, 0.9);
  for (RankRecord& r : records) r.effective.phantom.reset();
  EXPECT_FALSE(derive(Trial(), records, nullptr).step_guessed_share);
}

TEST(Counted, OfARealGpuNothingIsCounted) {
  for (const char* effective : {"{}", R"({"phantom": {}})", R"({"phantom": {"step": {"launches": 1}}})",
                                R"({"phantom": {"step":
            {"launches": -1, "host_syncs": 1, "host_work_ns": 1, "device_ns": 1, "busy_ns": 1}}})"}) {
    std::vector<RankRecord> records = of_two_ranks();
    for (RankRecord& r : records) r.effective = sweep::filled::read_text<EffectiveSettings>(effective);
    const Metrics m = derive(Trial(), records, nullptr);
    EXPECT_FALSE(m.step_launches || m.step_host_syncs || m.step_host_ms || m.pinned_bytes) << effective;
  }
}

}  // namespace
}  // namespace sweep::metrics
