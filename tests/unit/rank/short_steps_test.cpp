// Steps of many micro-steps from short ones; what a step takes is the test's own.
#include "worker/rank/short_steps.h"

#include <gtest/gtest.h>

namespace sweep::rank {
namespace {

constexpr shape::ShortSteps kSizes{4, 6, 8};
constexpr i64 kMicros = 100, kWarmup = 1;

SeenStep straight(i64 micros) {
  SeenStep out;
  out.times.step_ns = 1000 + 70 * micros, out.times.forward_ns = 20 * micros, out.times.tokens = 5;
  out.times.optimizer_ns = 300, out.times.exposed_comm_ns = 40;
  out.counts.emplace();
  out.counts->launches = 17 + 9 * micros, out.counts->peak_held_bytes = 0;
  out.counts->collectives = CollectiveCounts{{"send", {2 * micros, 64 * micros}}, {"all_reduce", {3, 900}}};
  out.sent = {{"dp", 3, 900}, {"pp", 2 * micros, 64 * micros}};
  return out;
}

// The micro-steps of the steps that ran, and the runner's step after the warm-up.
struct Ran {
  std::vector<i64> micros;
  SeenStep step;
  std::string said;
};

Ran after_warmup(
    const std::function<SeenStep(i64)>& run, bool begins_whole = false,
    const std::function<bool(bool)>& any_rank = [](bool bent) { return bent; }) {
  Ran out;
  const auto noted = [&](i64 micros) {
    out.micros.push_back(micros);
    return run(micros);
  };
  ShortStepRunner runner(kSizes, kMicros, kWarmup, begins_whole, noted, any_rank);
  runner.step();
  out.step = runner.step();
  out.said = runner.said();
  return out;
}

TEST(ShortSteps, AStepOfManyMicroStepsLiesOnTheLineThroughThreeOfFew) {
  const Ran ran = after_warmup(straight);
  EXPECT_EQ(ran.micros, (std::vector<i64>{8, 4, 6, 8}));
  const SeenStep whole = straight(kMicros);
  EXPECT_EQ(ran.step.times.step_ns, whole.times.step_ns);
  EXPECT_EQ(ran.step.times.forward_ns, whole.times.forward_ns);
  EXPECT_EQ(ran.step.times.optimizer_ns, whole.times.optimizer_ns);
  EXPECT_EQ(ran.step.times.exposed_comm_ns, whole.times.exposed_comm_ns);
  EXPECT_EQ(ran.step.times.tokens, whole.times.tokens);
  EXPECT_EQ(ran.step.counts, whole.counts);
  EXPECT_EQ(ran.step.sent, whole.sent);
}

TEST(ShortSteps, AFirstStepMayBeWhole) {
  EXPECT_EQ(after_warmup(straight, true).micros, (std::vector<i64>{kMicros, 4, 6, 8}));
}

TEST(ShortSteps, AStepThatBendsRunsWhole) {
  const auto bent = [](i64 micros) {
    SeenStep out = straight(micros);
    out.times.step_ns += 2 * micros * micros;
    return out;
  };
  const Ran ran = after_warmup(bent);
  EXPECT_EQ(ran.micros, (std::vector<i64>{8, 4, 6, 8, kMicros}));
  EXPECT_EQ(ran.step.times.step_ns, bent(kMicros).times.step_ns);
  EXPECT_EQ(ran.said.find("whole"), 0u) << ran.said;
}

TEST(ShortSteps, ARankRunsWholeWhereAnotherOneBends) {
  EXPECT_EQ(after_warmup(straight, false, [](bool) { return true; }).micros.back(), kMicros);
}

TEST(ShortSteps, ADifferenceIsOfCountersAndCollectives) {
  const PhantomCounts none = difference(*straight(6).counts, *straight(6).counts);
  EXPECT_EQ(none.launches, 0);
  EXPECT_EQ(none.collectives->at("send"), CollectiveCount());
  EXPECT_FALSE(none.matmuls) << "not counted";
  const PhantomCounts all = difference(PhantomCounts(), *straight(6).counts);
  EXPECT_EQ(all.launches, straight(6).counts->launches);
  EXPECT_EQ(all.collectives, straight(6).counts->collectives);
}

}  // namespace
}  // namespace sweep::rank
