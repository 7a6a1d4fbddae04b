#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "orchestrator/search/learner.h"

namespace sweep::search {
namespace {

using ::testing::ElementsAre;

// Trials with the answers that they would have.
class World {
 public:
  void add(const Trial& t, double predicted, double rate, TrialStatus ends = TrialStatus::kMeasured) {
    trials_.push_back(t);
    Candidate c;
    c.trial = &trials_.back(), c.predicted_rate = predicted;
    all.push_back(c);
    c.status = ends, c.rate = rate, c.tried = true;
    answers.push_back(c);
  }
  void answer(std::size_t i) { all[i] = answers[i]; }
  std::vector<Candidate> all, answers;

 private:
  std::deque<Trial> trials_;
};

Trial layout(i64 tp, i64 size) {
  Trial t;
  t.model = "m", t.tp = tp, t.micro_batch_size = size, t.grad_accum = 64 / size;
  return t;
}

Decision decide(const std::vector<Candidate>& all, const Strategy& strategy) {
  return Learner(all, strategy).next();
}

Strategy searching() {
  Strategy s;
  s.kind = StrategyKind::kSearch;
  return s;
}

TEST(Search, BeginsWithTheBestPredicted) {
  World w;
  w.add(layout(1, 1), 10, 10), w.add(layout(2, 1), 30, 5), w.add(layout(4, 1), 20, 40);
  EXPECT_THAT(decide(w.all, searching()).next, ElementsAre(1));
}

TEST(Search, WhatProbablyDoesNotFitWaits) {
  World w;
  w.add(layout(1, 1), 10, 10), w.add(layout(2, 1), 30, 5);
  w.all[1].fit_chance = 0.1;
  EXPECT_THAT(decide(w.all, searching()).next, ElementsAre(0));
}

// Measurements as predicted with tp 1 and half as fast with tp 16 move the next choice to tp 1.
TEST(Search, AMeasurementCorrectsWhatIsLikeIt) {
  World w;
  for (const i64 size : {1, 2, 4, 8}) w.add(layout(16, size), 110 + static_cast<double>(size), 50);
  for (const i64 size : {1, 2, 4, 8}) w.add(layout(1, size), 100 + static_cast<double>(size), 100);
  w.answer(3);
  w.answer(7);
  const auto next = decide(w.all, searching()).next;
  ASSERT_EQ(next.size(), 1u);
  EXPECT_GE(next[0], 4u);
}

TEST(Search, FindsABestThatPredictionsMiss) {
  World w;
  std::size_t best = 0;
  for (const i64 tp : {1, 2, 4, 8})
    for (const i64 size : {1, 2, 4, 8, 16, 32}) {
      const double true_rate =
          1000 / (1 + std::pow(std::log2(double(tp)) - 2, 2)) * std::pow(double(size), 0.4);
      w.add(layout(tp, size), 1000 / std::pow(double(tp), 0.3), true_rate);
      if (true_rate > w.answers[best].rate) best = w.all.size() - 1;
    }
  auto s = searching();
  s.max_trials = 10;
  const auto order = replay(w.all, w.answers, s);
  EXPECT_LE(order.size(), 10u);
  EXPECT_THAT(order, ::testing::Contains(best));
}

TEST(Search, StopsWhenLittleIsPromised) {
  World w;
  for (const i64 size : {1, 2, 4, 8, 16, 32, 64, 128})
    w.add(layout(1, size), 100 * double(size), 100 * double(size));
  const auto order = replay(w.all, w.answers, searching());
  EXPECT_LT(order.size(), 8u);
  for (const auto i : order) w.answer(i);
  const auto end = decide(w.all, searching());
  EXPECT_TRUE(end.next.empty());
  EXPECT_EQ(end.ruled_out.size(), 8 - order.size());
  for (const auto& out : end.ruled_out) EXPECT_EQ(out.rule, "search");
}

// One trial in three is ten times slower than predicted, whatever its axes; one that is predicted far down is
// the best.
TEST(Search, GoesOnWherePredictionsProveWrong) {
  World w;
  std::size_t best = 0;
  for (const i64 tp : {1, 2, 4, 8, 16})
    for (const i64 size : {1, 2, 4, 8, 16}) {
      const std::size_t i = w.all.size();
      const double predicted = 1000 * std::pow(0.93, double(i));
      w.add(layout(tp, size), predicted, i == 19 ? 6 * predicted : i % 3 == 0 ? predicted / 10 : predicted);
      if (w.answers[i].rate > w.answers[best].rate) best = i;
    }
  ASSERT_EQ(best, 19u);
  auto s = searching();
  s.max_trials = 20;
  EXPECT_THAT(replay(w.all, w.answers, s), ::testing::Contains(best));
}

// The trials that are left are predicted at less than a hundredth of the best: no error that was seen makes up for that.
TEST(Search, WrongPredictionsOfHopelessTrialsKeepNoSearchGoing) {
  World w;
  for (const i64 size : {1, 2, 4, 8, 16, 32}) w.add(layout(1, size), 1000, size == 4 ? 300 : 1000);
  for (const i64 size : {1, 2, 4, 8, 16, 32}) w.add(layout(16, size), 2, 2);
  const auto order = replay(w.all, w.answers, searching());
  EXPECT_LE(order.size(), 7u);
}

TEST(Search, StopsAtMaxTrialsOfEachQuestion) {
  World w;
  for (const i64 seq_len : {64, 128})
    for (const i64 tp : {1, 2, 4, 8, 16, 32, 64}) {
      auto t = layout(tp, 1);
      t.seq_len = seq_len;
      w.add(t, 100 - double(tp % 5), double(tp));
    }
  auto s = searching();
  s.max_trials = 3;
  EXPECT_EQ(replay(w.all, w.answers, s).size(), 6u);
}

TEST(Search, KeepsToWhatMayRunAtOnce) {
  World w;
  for (const i64 tp : {1, 2, 4, 8, 16}) w.add(layout(tp, 1), 100, 100);
  auto s = searching();
  s.at_once = 3;
  w.all[0].status = TrialStatus::kRunning;
  EXPECT_EQ(decide(w.all, s).next.size(), 2u);
  s.at_once = 1;
  const auto waits = decide(w.all, s);
  EXPECT_TRUE(waits.next.empty());
  EXPECT_TRUE(waits.ruled_out.empty());
}

TEST(Search, OutOfMemoryRulesOutLargerMicroBatchesOfTheLayout) {
  World w;
  w.add(layout(1, 4), 10, 0, TrialStatus::kOutOfMemory);
  w.add(layout(1, 8), 20, 0), w.add(layout(1, 2), 5, 5), w.add(layout(2, 8), 20, 20);
  w.answer(0);
  const auto decision = decide(w.all, searching());
  ASSERT_EQ(decision.ruled_out.size(), 1u);
  EXPECT_EQ(decision.ruled_out[0].candidate, 1u);
  EXPECT_EQ(decision.ruled_out[0].rule, "history");
  EXPECT_THAT(decision.next, ElementsAre(3));
}

TEST(Search, TheSameStateGivesTheSameDecision) {
  World w;
  for (const i64 tp : {1, 2, 4, 8, 16}) w.add(layout(tp, 1), 100, double(tp));
  w.answer(0), w.answer(4);
  EXPECT_EQ(decide(w.all, searching()).next, decide(w.all, searching()).next);
}

// Axes of a user's own trainer are labels; nothing is predicted of it.
TEST(Search, LearnsFromAxesOfACommand) {
  World w;
  for (const int workers : {1, 2, 4, 8, 16, 32}) {
    Trial t;
    t.model = "command";
    t.labels = "{\"workers\":" + std::to_string(workers) + "}";
    w.add(t, 1, workers);
    w.all.back().predicted_rate.reset();
  }
  w.answer(0), w.answer(1), w.answer(2), w.answer(3);
  EXPECT_THAT(decide(w.all, searching()).next, ElementsAre(4));
}

// Show: the largest and the fastest of 20 layouts, with log2(range) + 2 trials of each at most.
TEST(Batch, FindsWhatTheFullGridFinds) {
  Strategy s;
  s.kind = StrategyKind::kBatch;
  for (i64 number = 0; number < 20; ++number) {
    World w;
    const i64 largest = 1 + number * 5 % 32, fastest = std::max<i64>(1, largest - number % 3);
    for (i64 size = 1; size <= 32; ++size) {
      const double rate = 100.0 * static_cast<double>(size <= fastest ? size : 2 * fastest - size) + 1000;
      w.add(layout(1, size), 100, rate, size <= largest ? TrialStatus::kMeasured : TrialStatus::kOutOfMemory);
      w.all.back().trial = w.answers.back().trial;
      w.all.back().fit_chance =
          chance_to_fit(double(size), double(largest) * (1 + 0.04 * double(number % 7 - 3)));
    }
    const auto order = replay(w.all, w.answers, s);
    EXPECT_LE(static_cast<i64>(order.size()), most_batch_trials(w.all, layouts(w.all).front(), Strategy{}));
    EXPECT_EQ(most_batch_trials(w.all, layouts(w.all).front(), Strategy{}), 7);
    EXPECT_THAT(order, ::testing::Contains(static_cast<std::size_t>(largest - 1))) << number;
    EXPECT_THAT(order, ::testing::Contains(static_cast<std::size_t>(fastest - 1))) << number;
  }
}

TEST(Batch, FindsTheLargestBeforeRetries) {
  Strategy s;
  s.kind = StrategyKind::kBatch;
  World w;
  for (i64 size = 1; size <= 16; ++size) {
    w.add(layout(1, size), 100, 100, size <= 9 ? TrialStatus::kMeasured : TrialStatus::kOutOfMemory);
    w.answers.back().alloc_retries = size > 7 ? 3 : 0;
  }
  const auto order = replay(w.all, w.answers, s);
  EXPECT_THAT(order, ::testing::Contains(8u));
  EXPECT_THAT(order, ::testing::Contains(6u));
  EXPECT_LE(order.size(), 6u);
}

TEST(Batch, NamesTheSizesThatFailedAndSaysWhereItDidNotLook) {
  Strategy s;
  s.kind = StrategyKind::kBatch, s.history = false;
  World w;
  for (i64 size = 11; size <= 15; ++size) w.add(layout(1, size), 100, 100, TrialStatus::kMeasured);
  w.answers[2].status = TrialStatus::kFailed, w.answers[2].tried = true;
  w.answers[3].status = TrialStatus::kOutOfMemory, w.answers[4].status = TrialStatus::kWaiting;
  const auto decision = decide(w.answers, s);
  ASSERT_EQ(decision.ruled_out.size(), 1u);
  EXPECT_EQ(decision.ruled_out[0].candidate, 4u);
  EXPECT_NE(decision.ruled_out[0].reason.find("13 failed"), std::string::npos)
      << decision.ruled_out[0].reason;
}

TEST(Batch, ALayoutWhereNothingFitsEnds) {
  Strategy s;
  s.kind = StrategyKind::kBatch;
  World w;
  for (i64 size = 1; size <= 8; ++size) w.add(layout(1, size), 100, 0, TrialStatus::kOutOfMemory);
  EXPECT_LE(replay(w.all, w.answers, s).size(), 5u);
}

Strategy growing() {
  Strategy s;
  s.kind = StrategyKind::kGrow;
  return s;
}

Trial with_layers(i64 layers, i64 nodes) {
  Trial t;
  t.spec.family = "gpt2", t.spec.hidden_size = 64, t.spec.heads = t.spec.kv_heads = 4, t.spec.head_dim = 16;
  t.spec.intermediate_size = 256, t.spec.vocab_size = 256, t.spec.max_positions = 64,
  t.spec.tie_embeddings = true;
  t.spec.layers = layers, t.model = "layers-" + std::to_string(layers), t.nodes = nodes, t.dp = 4 * nodes;
  return t;
}

// 30 models on 1, 2 and 4 nodes, of which 7, 12 and 29 fit, with a prediction that is up to 12 % off or with none.
void finds_the_largest_models(bool predicted) {
  World w;
  const std::pair<i64, i64> truth[] = {{1, 7}, {2, 12}, {4, 29}};
  for (const auto& [nodes, largest] : truth)
    for (i64 layers = 30; layers >= 1; --layers) {
      w.add(with_layers(layers, nodes), 100, 1e3 / double(layers),
            layers <= largest ? TrialStatus::kMeasured : TrialStatus::kOutOfMemory);
      if (predicted)
        w.all.back().fit_chance =
            chance_to_fit(double(layers), double(largest) * (0.88 + 0.06 * double(nodes)));
      w.answers.back().fit_chance = w.all.back().fit_chance;
    }
  const auto order = replay(w.all, w.answers, growing());
  for (std::size_t setting = 0; setting < 3; ++setting) {
    const auto at = static_cast<std::size_t>(30 - truth[setting].second) + 30 * setting;
    EXPECT_THAT(order, ::testing::Contains(at)) << truth[setting].first << " nodes";
  }
  EXPECT_LE(static_cast<i64>(order.size()), most_trials(w.all, growing(), std::vector<double>(90, 1)).trials);
  EXPECT_LE(order.size(), predicted ? 21u : 33u);
  for (const std::size_t i : order) w.answer(i);
  for (const auto& out : decide(w.all, growing()).ruled_out) EXPECT_EQ(out.rule, "grow");
  EXPECT_EQ(decide(w.all, growing()).ruled_out.size(), 90 - order.size());
}

TEST(Grow, FindsTheLargestModelOfEachSettingByThePrediction) {
  finds_the_largest_models(true);
}

TEST(Grow, WithoutAPredictionModelsDoubleFromTheSmallest) {
  finds_the_largest_models(false);
  World w;
  for (i64 layers = 1; layers <= 64; ++layers) w.add(with_layers(layers, 1), 1, 1, TrialStatus::kMeasured);
  EXPECT_THAT(decide(w.all, growing()).next, ElementsAre(0));
}

// With `eager` no model above the second fits, compiled all do.
TEST(Grow, AnAxisOfTheProgramsOwnMakesSettings) {
  World w;
  for (const char* mode : {"compiled", "eager"})
    for (i64 layers = 1; layers <= 8; ++layers) {
      Trial t = with_layers(layers, 1);
      t.workload = Workload::kCommand, t.program = mode + std::to_string(layers);
      t.labels = R"({"mode":")" + std::string(mode) + "\"}";
      w.add(t, 1, 1, *mode == 'c' || layers <= 2 ? TrialStatus::kMeasured : TrialStatus::kOutOfMemory);
    }
  const auto order = replay(w.all, w.answers, growing());
  EXPECT_THAT(order, ::testing::IsSupersetOf({7u, 8u + 1, 8u + 2}))
      << "the largest of each, and what is beyond it";
}

TEST(Grow, ASettingWhereNoModelFitsEnds) {
  World w;
  for (i64 layers = 1; layers <= 8; ++layers) w.add(with_layers(layers, 1), 1, 0, TrialStatus::kOutOfMemory);
  EXPECT_EQ(replay(w.all, w.answers, growing()), std::vector<std::size_t>{0});
}

Strategy playing() {
  Strategy s;
  s.kind = StrategyKind::kPlaybook, s.max_trials = 20;
  return s;
}

// Rates of this world have one peak: tp 2, micro-batch 4. tp 1 does not fit.
World hill() {
  World w;
  for (const i64 tp : {1, 2, 4, 8})
    for (const i64 size : {1, 2, 4, 8}) {
      const double rate =
          1000 - 100 * std::abs(std::log2(double(tp)) - 1) - 50 * std::abs(std::log2(double(size)) - 2);
      w.add(layout(tp, size), 500, rate, tp == 1 ? TrialStatus::kOutOfMemory : TrialStatus::kMeasured);
      w.all.back().fit_chance = tp == 1 ? 0.5 : 0.9;
    }
  return w;
}

TEST(Playbook, FitsFirstThenTunesToThePeak) {
  const World w = hill();
  const auto order = replay(w.all, w.answers, playing());
  ASSERT_GE(order.size(), 3u);
  EXPECT_EQ(w.all[order[0]].trial->tp, 1) << "the least model parallelism first";
  EXPECT_EQ(w.all[order[1]].trial->tp, 2) << "then more, because that did not fit";
  EXPECT_THAT(order, ::testing::Contains(6u));
  EXPECT_LE(order.size(), 8u);
}

TEST(Playbook, ReachesTheLargestGlobalBatch) {
  World w;
  for (const i64 batch : {8, 16, 32}) {
    auto t = layout(1, 1);
    t.grad_accum = t.global_batch_size = batch;
    w.add(t, 100, 100 - double(batch));
  }
  EXPECT_THAT(replay(w.all, w.answers, playing()), ElementsAre(0, 2));
}

TEST(Playbook, ExplainsEachDecisionAndStopsAtMaxTrials) {
  World w = hill();
  auto s = playing();
  s.max_trials = 3;
  EXPECT_EQ(decide(w.all, s).notes.size(), 1u);
  EXPECT_EQ(replay(w.all, w.answers, s).size(), 3u);
}

TEST(Groups, DerivedLabelsAndCommandsFollowTheMicroBatchAxesOfACommandDoNot) {
  World w;
  for (const int workers : {1, 2})
    for (const i64 size : {1, 2, 4}) {
      auto t = layout(1, size);
      t.program = "train --size " + std::to_string(size);
      t.labels = "{\"twice\":" + std::to_string(2 * size) + ",\"workers\":" + std::to_string(workers) + "}";
      w.add(t, 1, 1);
    }
  EXPECT_EQ(layouts(w.all), (std::vector<Group>{{0, 1, 2}, {3, 4, 5}}));
}

TEST(Groups, GlobalBatchOrAccumulationFollowsTheMicroBatch) {
  World w;
  for (const i64 size : {1, 2, 4}) {
    auto t = layout(1, size);
    t.global_batch_size = 64;
    w.add(t, 1, 1);
    t.grad_accum = 2, t.global_batch_size = 2 * size, t.zero = 1;
    w.add(t, 1, 1);
  }
  EXPECT_EQ(layouts(std::span(w.all).subspan(0, 0)).size(), 0u);
  std::vector<Candidate> fixed_batch, fixed_accumulation;
  for (std::size_t i = 0; i < w.all.size(); ++i)
    (i % 2 == 0 ? fixed_batch : fixed_accumulation).push_back(w.all[i]);
  EXPECT_EQ(layouts(fixed_batch).size(), 1u);
  EXPECT_EQ(layouts(fixed_accumulation).size(), 1u);
}

}  // namespace
}  // namespace sweep::search
