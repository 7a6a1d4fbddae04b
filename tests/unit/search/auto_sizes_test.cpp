// `micro_batch_size: auto`: the sizes that are tried, and the most trials that a strategy uses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>

#include "orchestrator/search/learner.h"

namespace sweep::search {
namespace {

using ::testing::Contains;

class AutoSizes : public ::testing::Test {
 protected:
  // The sizes that are tried of one layout, in order.
  std::vector<i64> tried(i64 largest, const std::function<double(i64)>& rate) {
    std::vector<i64> out;
    for (const std::size_t i : replay(before(), after(largest, rate), strategy))
      out.push_back(trials_[i].micro_batch_size);
    return out;
  }
  void SetUp() override {
    strategy.auto_micro_batch = true;
    for (i64 size = 1; size <= 1024; size += std::max<i64>(1, size / 8)) {
      Trial t;
      t.model = "m", t.micro_batch_size = t.global_batch_size = size;
      trials_.push_back(t);
    }
  }
  std::vector<Candidate> before() const {
    std::vector<Candidate> out(trials_.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i].trial = &trials_[i];
      if (limit > 0) out[i].fit_chance = chance_to_fit(double(trials_[i].micro_batch_size), limit);
    }
    return out;
  }
  Strategy strategy;
  double limit = 0;  // 0: nothing is predicted

 private:
  std::vector<Candidate> after(i64 largest, const std::function<double(i64)>& rate) const {
    auto out = before();
    for (Candidate& c : out) {
      const i64 size = c.trial->micro_batch_size;
      c.status = size <= largest ? TrialStatus::kMeasured : TrialStatus::kOutOfMemory;
      c.rate = rate(size);
    }
    return out;
  }
  std::deque<Trial> trials_;
};

double rising(i64 size) {
  return double(size);
}
// Nothing is gained beyond 8.
double flat(i64 size) {
  return double(std::min<i64>(size, 8));
}

TEST_F(AutoSizes, WithoutAPredictionTheyDoubleFromTheSmallest) {
  const auto sizes = tried(40, rising);
  ASSERT_GE(sizes.size(), 3u);
  EXPECT_EQ(sizes[0], 1);
  EXPECT_EQ(sizes[1], 2);
  EXPECT_EQ(sizes[2], 4);
  EXPECT_LE(*std::ranges::max_element(sizes), 84) << "no more than twice what fits";
  EXPECT_LE(static_cast<i64>(sizes.size()),
            most_trials(before(), strategy, std::vector<double>(100, 1)).trials);
  i64 fits = 0;
  for (const i64 size : sizes)
    if (size <= 40) fits = std::max(fits, size);
  EXPECT_GE(fits, 36) << "the largest of them that fits";
}

TEST_F(AutoSizes, TheyEndWhereLargerOnesAreNoFaster) {
  const auto sizes = tried(1024, flat);
  EXPECT_THAT(sizes, Contains(8));
  EXPECT_LE(*std::ranges::max_element(sizes), 36);
}

TEST_F(AutoSizes, APredictionOfWhatFitsIsUsed) {
  limit = 100;
  const auto sizes = tried(96, rising);
  ASSERT_FALSE(sizes.empty());
  EXPECT_GT(sizes[0], 32) << "they do not begin with 1";
  EXPECT_THAT(sizes, Contains(::testing::AllOf(::testing::Ge(80), ::testing::Le(96))));
  EXPECT_LE(sizes.size(), 12u);
}

TEST_F(AutoSizes, TheMostThatRunsIsCountedByTheMostExpensive) {
  std::vector<double> cost(before().size(), 1);
  cost.back() = 10;
  strategy = {};
  strategy.kind = StrategyKind::kSearch, strategy.max_trials = 3;
  EXPECT_EQ(most_trials(before(), strategy, cost).trials, 3);
  EXPECT_DOUBLE_EQ(most_trials(before(), strategy, cost).cost, 12);
  strategy.kind = StrategyKind::kGrid;
  EXPECT_EQ(most_trials(before(), strategy, cost).trials, static_cast<i64>(cost.size()));
}

}  // namespace
}  // namespace sweep::search
