// Trials that have ended decide about others.
#include "orchestrator/search/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "schema/codec.h"

namespace sweep::search {
namespace {

using ::testing::HasSubstr;

class HistoryTest : public ::testing::Test {
 protected:
  Candidate& add(i64 size, i64 accumulation, TrialStatus status = TrialStatus::kWaiting) {
    Trial t;
    t.model = "m", t.micro_batch_size = size, t.grad_accum = accumulation;
    t.global_batch_size = size * accumulation;
    return add(t, status);
  }
  Candidate& add(const Trial& t, TrialStatus status = TrialStatus::kWaiting) {
    trials_.push_back(t);
    ids_.push_back(trial_id(t));
    Candidate c;
    c.trial = &trials_.back(), c.id = ids_.back(), c.status = status;
    all.push_back(c);
    return all.back();
  }
  std::vector<RuledOut> concluded(bool skip_recompute = false) const {
    const History history(all, {true, skip_recompute});
    std::vector<RuledOut> out;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].status != TrialStatus::kWaiting)
        std::ranges::move(history.concluded_from(all, i), std::back_inserter(out));
    return out;
  }
  std::vector<Candidate> all;

 private:
  std::deque<Trial> trials_;
  std::deque<std::string> ids_;
};

TEST_F(HistoryTest, AnOomRulesOutLargerMicroBatchesOfItsLayoutAndIsNamed) {
  add(2, 1), add(4, 1, TrialStatus::kOutOfMemory), add(8, 1);
  Trial other = *all[2].trial;
  other.tp = 2;
  add(other);
  const auto out = concluded();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].candidate, 2u);
  EXPECT_EQ(out[0].rule, "history");
  EXPECT_THAT(out[0].reason, HasSubstr(std::string(all[1].id)));
  EXPECT_EQ(History(all, {}).concluded_from(all, 2).size(), 1u) << "the same when that one waits again";
}

TEST_F(HistoryTest, WithTheSameGlobalBatchASingleMicroStepMayNeedLess) {
  add(2, 8, TrialStatus::kOutOfMemory), add(4, 4), add(16, 1);
  const auto out = concluded();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].candidate, 1u);
}

TEST_F(HistoryTest, WhatIsPredictedToNeedLessIsNotRuledOut) {
  add(2, 1, TrialStatus::kOutOfMemory).predicted_bytes = 100;
  add(4, 1).predicted_bytes = 90;
  EXPECT_TRUE(concluded().empty());
  all[1].predicted_bytes = 110;
  EXPECT_EQ(concluded().size(), 1u);
}

TEST_F(HistoryTest, TheMemoryOfTheHostIsSharedAndSaysNothing) {
  add(2, 1, TrialStatus::kOutOfMemory).host_oom = true;
  add(4, 1);
  EXPECT_TRUE(concluded().empty());
}

TEST_F(HistoryTest, OfACommandEveryLabelMustBeEqual) {
  Trial t;
  t.model = "command", t.workload = Workload::kCommand, t.program = "1", t.labels = R"({"lr":1})";
  add(t, TrialStatus::kOutOfMemory);
  t.micro_batch_size = t.global_batch_size = 2, t.program = "2";
  add(t);
  t.labels = R"({"lr":2})", t.program = "3";
  add(t);
  const auto out = concluded();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].candidate, 1u);
}

TEST_F(HistoryTest, WhatFitsWithoutRecomputationIsNotRunWithIt) {
  add(2, 1, TrialStatus::kMeasured);
  Trial with = *all[0].trial;
  with.recompute = Recompute::kFull, with.recompute_every = 2;
  add(with);
  with.micro_batch_size = with.global_batch_size = 4;
  add(with);
  EXPECT_TRUE(concluded(false).empty()) << "only where it is asked for";
  const auto out = concluded(true);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].candidate, 1u);
  EXPECT_EQ(out[0].rule, "recompute");
  EXPECT_THAT(out[0].reason, HasSubstr(std::string(all[0].id)));
  EXPECT_EQ(History(all, {true, true}).concluded_from(all, 1).size(), 1u);
}

TEST(SmallerFirst, WithinTheLayoutsPlacesOfTheOrder) {
  std::vector<PlanEntry> entries;
  const auto add = [&](i64 size, i64 tp, bool admitted = true) {
    PlanEntry e;
    e.trial.model = "m", e.trial.micro_batch_size = e.trial.global_batch_size = size, e.trial.tp = tp;
    e.id = trial_id(e.trial), e.admitted = admitted, e.order = static_cast<i64>(entries.size());
    entries.push_back(std::move(e));
  };
  add(8, 1), add(4, 2), add(4, 1), add(2, 1, false), add(1, 1), add(1, 2);
  smaller_first(entries);
  std::vector<i64> order;
  for (const PlanEntry& e : entries) order.push_back(e.order);
  EXPECT_THAT(order, ::testing::ElementsAre(4, 5, 2, 3, 0, 1));
}

}  // namespace
}  // namespace sweep::search
