// search over a command: nothing is predicted, and the first trials show what each axis does.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <random>
#include <set>

#include "orchestrator/search/learner.h"

namespace sweep::search {
namespace {

// 108 configurations of a trainer: micro-batch, optimizer, workers, compiled or not. Large micro-batches run
// out of memory. Factors are drawn at random.
class Trainer {
 public:
  explicit Trainer(unsigned seed) : random_(seed) {
    const double half = between(1, 6), workers[] = {between(0.6, 0.9), between(0.9, 1), 1};
    const double speeds[] = {1, between(0.8, 1.05), between(0.7, 1)}, compiled = between(0.9, 1.35);
    const double needs[] = {1, between(0.6, 0.9), between(0.5, 0.8)}, memory = between(12, 70);
    for (const int size : {1, 2, 4, 8, 16, 32})
      for (const int optimizer : {0, 1, 2})
        for (const int w : {0, 1, 2})
          for (const bool c : {false, true})
            add(size, fmt::format(R"({{"compile":{},"optimizer":"{}","workers":{}}})", c, optimizer, 2 * w),
                size * needs[optimizer] <= memory,
                size / (size + half) * speeds[optimizer] * workers[w] * (c ? compiled : 1) *
                    between(0.97, 1.03));
  }
  // The best of the tried trials, as a share of the best of all.
  double found(i64 max_trials) const {
    double best = 0, found = 0;
    for (const Candidate& each : answers) best = std::max(best, each.rate);
    for (const std::size_t i : tried(max_trials)) found = std::max(found, answers[i].rate);
    return found / best;
  }
  std::vector<std::size_t> tried(i64 max_trials) const {
    Strategy strategy;
    strategy.kind = StrategyKind::kSearch, strategy.max_trials = max_trials;
    return replay(all, answers, strategy);
  }
  std::vector<Candidate> all, answers;

 private:
  double between(double least, double most) { return std::uniform_real_distribution(least, most)(random_); }
  void add(i64 size, const std::string& labels, bool fits, double rate) {
    Trial& t = trials_.emplace_back();
    t.model = "command", t.workload = Workload::kCommand, t.labels = labels;
    t.micro_batch_size = t.global_batch_size = size;
    Candidate c;
    c.trial = &t;
    all.push_back(c);
    c.status = fits ? TrialStatus::kMeasured : TrialStatus::kOutOfMemory, c.rate = fits ? rate : 0;
    answers.push_back(c);
  }
  std::mt19937 random_;
  std::deque<Trial> trials_;
};

TEST(Unpredicted, TheFirstTrialsShowEveryValueOfEveryAxis) {
  const Trainer trainer(1);
  const auto order = trainer.tried(12);
  ASSERT_GE(order.size(), 6u);
  std::set<i64> sizes;
  std::set<std::string> labels;
  for (const std::size_t i : std::span(order).first(6)) {
    sizes.insert(trainer.all[i].trial->micro_batch_size);
    labels.insert(trainer.all[i].trial->labels);
  }
  EXPECT_EQ(sizes.size(), 6u);
  EXPECT_GE(labels.size(), 5u);
}

// At random 12 of the 108 find 89 % of the best on average.
TEST(Unpredicted, FewTrialsFindNearlyTheBest) {
  constexpr int kSeeds = 20;
  double sum = 0;
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    const Trainer trainer(seed);
    sum += trainer.found(12);
    EXPECT_GT(trainer.found(12), 0.85) << seed;
    EXPECT_GT(trainer.found(30), 0.95) << seed;
  }
  EXPECT_GT(sum / kSeeds, 0.95);
}

TEST(Unpredicted, ItDoesNotStopBeforeEachAxisWasSeenTwice) {
  const Trainer trainer(1);
  EXPECT_GE(trainer.tried(60).size(), 5u + 2 * 4);
}

}  // namespace
}  // namespace sweep::search
