// The walked time of a pipeline against the published formulas, against a walk of every micro-batch, and by
// hand.
#include "bench_kernels/shape/pipeline_time.h"

#include <gtest/gtest.h>

#include "tests/support/schedule_check.h"

namespace sweep::shape {
namespace {

std::vector<StageSeconds> even(const Pipeline& p) {
  const auto chunks = static_cast<double>(p.chunks);
  return std::vector<StageSeconds>(static_cast<std::size_t>(p.stages()), {1 / chunks, 2 / chunks});
}

TEST(PipelineTime, EqualStagesGiveThePublishedBubbles) {
  for (const Schedule kind :
       {Schedule::kGpipe, Schedule::k1f1b, Schedule::kInterleaved, Schedule::kZeroBubble})
    for (const i64 ranks : {2, 4, 8})
      for (const i64 micros : {8, 16, 64, 1024}) {
        const Pipeline p{kind, ranks, micros, kind == Schedule::kInterleaved ? 2 : 1};
        const double busy = 3 * static_cast<double>(micros);
        const double idle = 1 - busy / pipeline_seconds(p, even(p), 0);
        EXPECT_NEAR(idle, ideal_bubble(p), 1e-9) << to_string(kind) << " " << ranks << " " << micros;
      }
}

TEST(PipelineTime, WhatIsContinuedEqualsAWalkOfEveryMicroBatch) {
  for (const Schedule kind :
       {Schedule::kGpipe, Schedule::k1f1b, Schedule::kInterleaved, Schedule::kZeroBubble}) {
    const Pipeline p{kind, 4, 64, kind == Schedule::kInterleaved ? 2 : 1};
    const double whole = check_schedule(p, make_schedule(p), {1, 2, 1}).value().makespan;
    EXPECT_NEAR(pipeline_seconds(p, even(p), 0), whole, 1e-9 * whole) << to_string(kind);
  }
}

// 1f1b: the slowest stage works on every micro-batch, the others add their one.
TEST(PipelineTime, TheSlowestStageSetsThePace) {
  const Pipeline p{Schedule::k1f1b, 4, 16, 1};
  std::vector<StageSeconds> stages = even(p);
  stages[3] = {2, 4};
  EXPECT_DOUBLE_EQ(pipeline_seconds(p, stages, 0), 16 * 6 + 3 * 3);
}

TEST(PipelineTime, MessagesAddTheirLatencyOnTheWayInAndOut) {
  const Pipeline p{Schedule::k1f1b, 2, 1, 1};
  EXPECT_DOUBLE_EQ(pipeline_seconds(p, even(p), 0.25), 6 + 2 * 0.25);
  const Pipeline one{Schedule::k1f1b, 1, 3, 1};
  EXPECT_DOUBLE_EQ(pipeline_seconds(one, even(one), 0.25), 9);
}

}  // namespace
}  // namespace sweep::shape
