// Every schedule over many pipelines: no rank waits for ever, each micro-batch goes forward before backward,
// messages match, and time and memory are what the papers say.
#include "bench_kernels/shape/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/expected.h"
#include "bench_kernels/shape/schedule_times.h"
#include "tests/support/error_matchers.h"
#include "tests/support/schedule_check.h"

namespace sweep::shape {
namespace {

std::vector<Pipeline> pipelines(const std::vector<i64>& micros) {
  std::vector<Pipeline> all;
  for (i64 p = 1; p <= 8; ++p) {
    for (const i64 m : micros) {
      for (const auto kind : {Schedule::kGpipe, Schedule::k1f1b, Schedule::kZeroBubble})
        all.push_back({kind, p, m, 1});
      for (i64 v = 1; v <= 4; ++v)
        if (m % p == 0 && (p > 1 || v == 1)) all.push_back({Schedule::kInterleaved, p, m, v});
    }
  }
  return all;
}

// One of each kind and number of ranks, with as many micro-batches as ranks.
std::vector<Pipeline> one_of_each() {
  auto all = pipelines({1, 2, 3, 4, 5, 6, 7, 8});
  std::erase_if(all, [](const Pipeline& p) { return p.micros != p.ranks; });
  return all;
}

std::string described(const Pipeline& p) {
  return "kind " + std::to_string(static_cast<int>(p.kind)) + " p " + std::to_string(p.ranks) + " m " +
         std::to_string(p.micros) + " v " + std::to_string(p.chunks);
}

void expect_in_flight(const Pipeline& p, const std::vector<i64>& in_flight) {
  for (i64 rank = 0; rank < p.ranks; ++rank) {
    const double share =
        static_cast<double>(in_flight[static_cast<std::size_t>(rank)]) / static_cast<double>(p.chunks);
    if (p.kind == Schedule::kZeroBubble) {
      EXPECT_LE(share, peak_in_flight(p, rank)) << described(p) << " rank " << rank;
    } else {
      EXPECT_DOUBLE_EQ(share, peak_in_flight(p, rank)) << described(p) << " rank " << rank;
    }
  }
}

// Whether ranks wait for ever depends on the order of the lists only, not on what the computations cost. The bubble is that of the papers,
// and micro-batches in flight are as many as the formula says.
TEST(Schedule, NeverWaitsForEverAndIsAsThePapersSay) {
  for (const Pipeline& p : pipelines({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 31, 32})) {
    const auto report = check_schedule(p, make_schedule(p));
    ASSERT_TRUE(report) << described(p) << ": " << report.error().message;
    if (p.micros >= p.ranks)  // the formula is for full pipelines
      EXPECT_NEAR(report->bubble, ideal_bubble(p), 1e-9) << described(p);
    expect_in_flight(p, report->in_flight);
  }
}

TEST(Schedule, AfewMicroBatchesShowThePeakOfMany) {
  for (const Pipeline& p : one_of_each()) {
    Pipeline many = p, few = p;
    many.micros = 12 * p.ranks;
    few.micros = micros_with_same_peak(many);
    const auto a = check_schedule(many, make_schedule(many)), b = check_schedule(few, make_schedule(few));
    ASSERT_TRUE(a && b) << described(p);
    EXPECT_EQ(a->in_flight, b->in_flight) << described(p);
  }
}

TEST(Schedule, ShortStepsShowThePeakAndStandForManyMicroBatches) {
  for (const Pipeline& p : one_of_each()) {
    Pipeline many = p;
    many.micros = 24 * p.ranks;
    const auto steps = short_steps(many);
    ASSERT_EQ(steps.has_value(), p.kind != Schedule::kGpipe) << described(p) << ": GPipe keeps all of them";
    if (!steps) continue;
    EXPECT_GE(steps->most, micros_with_same_peak(many)) << described(p);
    EXPECT_EQ(steps->most - steps->more, p.ranks);
    EXPECT_EQ(steps->more - steps->few, p.ranks);
    for (const i64 micros : {steps->few, steps->more, steps->most}) {
      Pipeline some = p;
      some.micros = micros;
      EXPECT_TRUE(check_schedule(some, make_schedule(some))) << described(p) << ": " << micros;
    }
    many.micros = 2 * steps->most;
    EXPECT_FALSE(short_steps(many)) << described(p) << ": no less work";
  }
}

TEST(Schedule, OneRankRunsForwardAndBackwardInTurn) {
  const auto lists = make_schedule({Schedule::k1f1b, 1, 2, 1});
  const ActionList expected{
      {Act::kForward, 0, 0}, {Act::kBackward, 0, 0}, {Act::kForward, 0, 1}, {Act::kBackward, 0, 1}};
  ASSERT_EQ(lists.size(), 1u);
  EXPECT_EQ(lists[0], expected);
}

TEST(ScheduleCheck, NamesWhatIsWrong) {
  const Pipeline p{Schedule::k1f1b, 2, 3, 1};
  const auto good = make_schedule(p);
  const auto fault = [&](auto&& change) {
    auto lists = good;
    change(lists);
    const auto report = check_schedule(p, lists);
    return report ? Error() : report.error();
  };
  const auto find = [](ActionList& list, Act act, i64 micro) {
    return std::find(list.begin(), list.end(), Action{act, 0, micro});
  };
  EXPECT_THAT(fault([](auto&) {}), IsError(ErrorKind::kFailed));
  EXPECT_THAT(fault([&](auto& l) { l[1].erase(find(l[1], Act::kSendBackward, 1)); }),
              IsError(ErrorKind::kConflict, "message_order"));
  EXPECT_THAT(fault([&](auto& l) { l[1].erase(find(l[1], Act::kSendBackward, 2)); }),
              IsError(ErrorKind::kConflict, "deadlock"));
  EXPECT_THAT(fault([&](auto& l) { l[1].erase(find(l[1], Act::kRecvForward, 0)); }),
              IsError(ErrorKind::kMissing, "no_receive"));
  EXPECT_THAT(fault([&](auto& l) { l[0].erase(find(l[0], Act::kForward, 2)); }),
              IsError(ErrorKind::kMissing, "action_missing"));
  EXPECT_THAT(fault([&](auto& l) {
                l[0].push_back({Act::kForward, 0, 0});
              }),
              IsError(ErrorKind::kConflict, "action_twice"));
  EXPECT_THAT(fault([&](auto& l) { l[1].pop_back(); }), IsError(ErrorKind::kConflict, "deadlock"));
  EXPECT_THAT(fault([&](auto& l) { l.pop_back(); }), IsError(ErrorKind::kConflict, "list_count"));
}

TEST(ScheduleCheck, SeesACircleOfReceives) {
  const Pipeline p{Schedule::k1f1b, 2, 1, 1};
  std::vector<ActionList> lists(2);
  // Rank 0 wants the gradient before it has sent the activation: both wait.
  lists[0] = {
      {Act::kForward, 0, 0}, {Act::kRecvBackward, 0, 0}, {Act::kBackward, 0, 0}, {Act::kSendForward, 0, 0}};
  lists[1] = {
      {Act::kRecvForward, 0, 0}, {Act::kForward, 0, 0}, {Act::kBackward, 0, 0}, {Act::kSendBackward, 0, 0}};
  const auto report = check_schedule(p, lists);
  ASSERT_FALSE(report);
}

// Each pair of ranks agrees on the order of its messages, and still all three wait: NCCL has one queue a rank.
TEST(ScheduleCheck, SeesACircleThroughSeveralPeers) {
  const Pipeline p{Schedule::kInterleaved, 3, 3, 2};
  auto lists = make_schedule(p);
  ASSERT_TRUE(check_schedule(p, lists));
  const auto find = [](ActionList& list, Act act, i64 chunk) {
    return std::find(list.begin(), list.end(), Action{act, chunk, 0});
  };
  // Each waits for the rank above it before it serves the one below it.
  auto& first = lists[0];
  const Action from_last = *find(first, Act::kRecvForward, 1);
  first.erase(find(first, Act::kRecvForward, 1));
  first.insert(find(first, Act::kSendForward, 0), from_last);
  const auto report = check_schedule(p, lists);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error(), IsError(ErrorKind::kConflict, "deadlock"));
}

TEST(ScheduleTimes, EachRankTakesItsOwnTime) {
  const Pipeline p{Schedule::k1f1b, 2, 1, 1};
  const std::vector<ActionList> order = {computations(p, 0), computations(p, 1)};
  const std::vector<Costs> costs = {{1, 2, 1}, {3, 4, 2}};
  const auto spans = run_computations(p, order, costs);
  ASSERT_EQ(spans[0].size(), 2u);
  ASSERT_EQ(spans[1].size(), 2u);
  EXPECT_EQ(spans[1][0].start, 1) << "as soon as the first stage's forward is there";
  EXPECT_EQ(spans[1][1].end, 8);
  EXPECT_EQ(spans[0][1].start, 8);
  EXPECT_EQ(spans[0][1].end, 10);
}

}  // namespace
}  // namespace sweep::shape
