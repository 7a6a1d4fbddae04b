// A Learner that is told results one by one decides as one that begins with all of them.
#include "orchestrator/search/learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "schema/codec.h"

namespace sweep::search {
namespace {

// Trials of two models with micro-batches, layouts and recomputation. What each would end with is drawn at
// random: a rate, out of memory, a failure.
class RandomPlan {
 public:
  RandomPlan(unsigned seed, bool predicted) : random_(seed) {
    for (const char* model : {"a", "b"})
      for (const i64 tp : {1, 2, 4})
        for (const Recompute recompute : {Recompute::kNone, Recompute::kFull})
          for (const i64 size : {1, 2, 4, 8}) add(model, tp, recompute, size, predicted);
  }
  std::size_t below(std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
  }
  // Sometimes the attempt is lost, and the trial waits again.
  Known answer(std::size_t i) {
    Known out = answers_[i];
    if (below(5) == 0) out = Known();
    out.tried = true;
    return out;
  }
  std::vector<Candidate> all;

 private:
  void add(const std::string& model, i64 tp, Recompute recompute, i64 size, bool predicted) {
    Trial t;
    t.model = model, t.tp = tp, t.recompute = recompute, t.micro_batch_size = size;
    t.grad_accum = 2, t.global_batch_size = 2 * size;
    trials_.push_back(t), ids_.push_back(trial_id(t));
    Candidate c;
    c.trial = &trials_.back(), c.id = ids_.back();
    if (predicted) c.predicted_rate = 50 + double(below(100)), c.fit_chance = 0.3 + 0.1 * double(below(7));
    all.push_back(c);
    Known& known = answers_.emplace_back();
    const auto draw = below(10);
    known.status = draw < 6   ? TrialStatus::kMeasured
                   : draw < 9 ? TrialStatus::kOutOfMemory
                              : TrialStatus::kFailed;
    known.rate = known.status == TrialStatus::kMeasured ? 40 + double(below(120)) : 0;
    known.alloc_retries = i64(below(2));
  }
  std::mt19937 random_;
  std::deque<Trial> trials_;
  std::deque<std::string> ids_;
  std::vector<Known> answers_;
};

std::set<std::size_t> ruled_out(const Decision& decision) {
  std::set<std::size_t> out;
  for (const auto& each : decision.ruled_out) out.insert(each.candidate);
  return out;
}

// A run, and beside it what a database would hold: before each decision another learner begins from that.
class RandomRun {
 public:
  RandomRun(RandomPlan& plan, const Strategy& strategy)
      : plan_(plan), strategy_(strategy), stored_(plan.all), learner_(plan.all, strategy) {}

  bool step() {
    const auto now = learner_.next();
    Learner resumed(stored_, strategy_), anew(without_pruned(), strategy_);
    const auto again = resumed.next();
    EXPECT_EQ(again.next, now.next);
    EXPECT_EQ(again.notes, now.notes);
    const auto all_pruned = ruled_out(anew.next());
    for (const auto& each : now.ruled_out)
      stored_[each.candidate].status = TrialStatus::kFailed, pruned_.insert(each.candidate);
    EXPECT_EQ(all_pruned, pruned_);
    start(now.next);
    end();
    return !running_.empty() || learner_.waiting() > 0;
  }
  std::size_t tried() const {
    return static_cast<std::size_t>(std::ranges::count(stored_, true, &Known::tried));
  }

 private:
  std::vector<Candidate> without_pruned() const {
    auto out = stored_;
    for (const std::size_t i : pruned_) out[i].status = TrialStatus::kWaiting;
    return out;
  }
  // Not all that may start does: there may be no room.
  void start(const std::vector<std::size_t>& chosen) {
    for (const std::size_t i : chosen) {
      if (!running_.empty() && plan_.below(3) == 0) continue;
      learner_.started(i), stored_[i].status = TrialStatus::kRunning;
      running_.push_back(i);
    }
  }
  void end() {
    for (auto n = plan_.below(3); n > 0 && !running_.empty(); --n) {
      const auto at = running_.begin() + static_cast<std::ptrdiff_t>(plan_.below(running_.size()));
      const Known known = plan_.answer(*at);
      learner_.finished(*at, known), static_cast<Known&>(stored_[*at]) = known;
      running_.erase(at);
    }
  }

  RandomPlan& plan_;
  Strategy strategy_;
  std::vector<Candidate> stored_;
  Learner learner_;
  std::vector<std::size_t> running_;
  std::set<std::size_t> pruned_;
};

class LearnerProperty : public ::testing::TestWithParam<StrategyKind> {};

TEST_P(LearnerProperty, OneByOneIsAsFromNothing) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    RandomPlan plan(seed, seed % 3 != 0);
    Strategy strategy;
    strategy.kind = GetParam();
    strategy.at_once = 1 + seed % 4, strategy.max_trials = 6 + seed % 5;
    strategy.auto_micro_batch = strategy.kind == StrategyKind::kGrid;
    RandomRun run(plan, strategy);
    int steps = 0;
    while (run.step() && !HasFailure()) ASSERT_LT(++steps, 1000);
    ASSERT_FALSE(HasFailure());
    EXPECT_GT(run.tried(), 1u);
  }
}

std::vector<StrategyKind> every_kind() {
  std::vector<StrategyKind> out;
  for (std::size_t i = 0; i < std::size(kStrategies); ++i) out.push_back(static_cast<StrategyKind>(i));
  return out;
}

INSTANTIATE_TEST_SUITE_P(EveryStrategy, LearnerProperty, ::testing::ValuesIn(every_kind()),
                         [](const auto& each) { return std::string(to_string(each.param)); });

TEST(Learner, OfAGridItRulesOutWhatMustFailAndStartsNothing) {
  RandomPlan plan(1, true);
  Strategy strategy;
  strategy.history = true;
  Learner learner(plan.all, strategy);
  EXPECT_TRUE(learner.next().next.empty());
  Known oom;
  oom.status = TrialStatus::kOutOfMemory, oom.tried = true;
  learner.finished(1, oom);
  EXPECT_THAT(ruled_out(learner.next()), ::testing::ElementsAre(2u, 3u));
  EXPECT_TRUE(learner.next().ruled_out.empty()) << "it is named once";
}

TEST(Learner, WhatWaitsAgainIsRuledOutByWhatEndedMeanwhile) {
  RandomPlan plan(1, true);
  Strategy strategy;
  strategy.history = true;
  Learner learner(plan.all, strategy);
  learner.started(2);
  Known known;
  known.status = TrialStatus::kOutOfMemory, known.tried = true;
  learner.finished(1, known);
  EXPECT_THAT(ruled_out(learner.next()), ::testing::ElementsAre(3u));
  learner.finished(2, Known());
  EXPECT_THAT(ruled_out(learner.next()), ::testing::ElementsAre(2u));
}

}  // namespace
}  // namespace sweep::search
