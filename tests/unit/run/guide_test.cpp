// The run loop with a strategy: which trials it runs, which it rules out, and that it goes on where an
// earlier run ended.
#include "tests/support/must.h"
#include "tests/unit/run/sweep_runner_fixture.h"

namespace sweep::run {
namespace {

class GuideTest : public SweepRunnerTest {
 protected:
  // The fake launcher's steps take 1 ms, so that the rate grows with the batch.
  std::vector<PlanEntry> batches(i64 most) {
    std::vector<PlanEntry> out;
    for (i64 size = 1; size <= most; ++size) {
      PlanEntry e;
      e.trial.model = "tiny", e.trial.spec.layers = 1, e.trial.seq_len = 64;
      e.trial.micro_batch_size = e.trial.global_batch_size = size;
      e.predicted.seconds = 60, e.predicted.step_ms = 1;
      e.id = trial_id(e.trial), e.order = size;
      out.push_back(e);
    }
    return out;
  }
  void store_plan(const std::vector<PlanEntry>& entries) {
    const auto counts = store_->sync_plan(sweep_, entries, MeasurePlan{});
    ASSERT_TRUE(counts) << counts.error().message;
  }
  void run_all(const FakeLauncher::Script& script) {
    const auto end = run_with([&](const Attempt& a) {
      ran_.push_back(a.trial.micro_batch_size);
      return script(a);
    });
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(end->end, End::kDone);
  }
  i64 ruled_out_by(const std::string& rule) {
    const auto table =
        store_->query("SELECT count(*) FROM results WHERE outcome = 'pruned' AND rule = '" + rule + "'");
    EXPECT_TRUE(table) << table.error().message;
    return table ? std::get<i64>(table->rows[0][0]) : -1;
  }
  std::vector<i64> ran_;
};

FakeOutcome fine(const Attempt&) {
  return FakeOutcome::kOk;
}

TEST_F(GuideTest, ASearchRunsFewTrialsTheBestPredictedFirstAndAnswersAll) {
  settings_.strategy.kind = StrategyKind::kSearch;
  settings_.strategy.max_trials = 4;
  store_plan(batches(12));
  run_all(fine);
  EXPECT_EQ(ran_.size(), 4u);
  EXPECT_EQ(ran_.front(), 12);
  EXPECT_EQ(ruled_out_by("search"), 8);
  EXPECT_EQ(exit_code_for(*store_->progress(sweep_)), 0);
}

// By all tokens the padded one is twelve times as fast, by those of documents slower.
TEST_F(GuideTest, ASearchLooksForUsefulTokens) {
  settings_.strategy.kind = StrategyKind::kSearch;
  settings_.strategy.max_trials = 1;
  auto entries = batches(12);
  entries = {entries.front(), entries.back()};
  for (PlanEntry& e : entries) {
    e.trial.lengths = "fixed 4", e.trial.packing = e.trial.micro_batch_size == 1;
    e.id = trial_id(e.trial);
  }
  store_plan(entries);
  run_all(fine);
  EXPECT_EQ(ran_, std::vector<i64>{1});
}

TEST_F(GuideTest, ASearchGoesOnWhereAnEarlierRunEnded) {
  settings_.strategy.kind = StrategyKind::kSearch;
  settings_.strategy.max_trials = 3;
  store_plan(batches(12));
  run_all(fine);
  ASSERT_EQ(ran_.size(), 3u);
  store_plan(batches(12));  // a second `sweep run` does so too
  run_all(fine);
  EXPECT_EQ(ran_.size(), 3u) << "nothing is repeated";
  settings_.strategy.max_trials = 5;
  store_plan(batches(12));
  run_all(fine);
  EXPECT_EQ(ran_.size(), 5u);
  EXPECT_EQ(std::set<i64>(ran_.begin(), ran_.end()).size(), 5u);
}

TEST_F(GuideTest, TheWholeGridRunsAfterASearchWhenItIsAskedFor) {
  settings_.strategy.kind = StrategyKind::kSearch;
  settings_.strategy.max_trials = 3;
  store_plan(batches(8));
  run_all(fine);
  settings_.strategy.kind = StrategyKind::kGrid;
  store_plan(batches(8));
  run_all(fine);
  EXPECT_EQ(ran_.size(), 8u);
  EXPECT_EQ(count(Outcome::kOk), 8);
}

TEST_F(GuideTest, BatchFindsTheLargestThatFits) {
  settings_.strategy.kind = StrategyKind::kBatch;
  store_plan(batches(16));
  run_all(
      [](const Attempt& a) { return a.trial.micro_batch_size > 11 ? FakeOutcome::kOom : FakeOutcome::kOk; });
  EXPECT_LE(ran_.size(), 6u);
  EXPECT_EQ(std::count(ran_.begin(), ran_.end(), 11), 1);
  EXPECT_EQ(std::count(ran_.begin(), ran_.end(), 12), 1);
  EXPECT_EQ(ruled_out_by("history") + ruled_out_by("batch") + static_cast<i64>(ran_.size()), 16);
}

FakeOutcome fits_to_four(const Attempt& a) {
  return a.trial.micro_batch_size > 4 ? FakeOutcome::kOom : FakeOutcome::kOk;
}

TEST_F(GuideTest, AGridRunsNothingThatMustRunOutOfMemory) {
  settings_.strategy.history = true;
  settings_.ahead = 0;
  store_plan(batches(12));
  run_all(fits_to_four);
  EXPECT_EQ(count(Outcome::kOk), 4);
  EXPECT_EQ(ruled_out_by("history"), 12 - static_cast<i64>(ran_.size()));
  EXPECT_LT(ran_.size(), 12u);
  const auto table =
      store_->query("SELECT count(*) FROM results WHERE rule = 'history' AND predicted_ms IS NULL");
  EXPECT_EQ(std::get<i64>(table->rows[0][0]), 0) << "their predictions stay";
  EXPECT_EQ(exit_code_for(*store_->progress(sweep_)), 0);
}

TEST_F(GuideTest, AGridRunsEveryTrialUnlessHistoryIsAskedFor) {
  settings_.ahead = 0;
  store_plan(batches(12));
  run_all(fits_to_four);
  EXPECT_EQ(ran_.size(), 12u);
}

TEST_F(GuideTest, AResumedGridConcludesFromTheResultsThatAreThere) {
  settings_.strategy.history = true;
  store_plan(batches(5));
  run_all(fits_to_four);
  ASSERT_EQ(count(Outcome::kOom), 1);
  store_plan(batches(12));
  run_all(fits_to_four);
  EXPECT_EQ(ran_.size(), 5u) << "nothing more is run";
  EXPECT_EQ(ruled_out_by("history"), 7);
}

TEST_F(GuideTest, AnOomThatIsRetriedAndPassesRulesOutNothing) {
  settings_.strategy.history = true;
  settings_.ahead = 0;
  store_plan(batches(8));
  run_all(fits_to_four);
  ASSERT_GT(ruled_out_by("history"), 0);
  const Outcome oom[] = {Outcome::kOom};
  ASSERT_TRUE(store_->reopen(sweep_, oom));
  run_all(fine);
  EXPECT_EQ(count(Outcome::kOk), 8);
  EXPECT_EQ(ruled_out_by("history"), 0);
}

TEST_F(GuideTest, AnAuditRunsWhatWasPrunedAndChangesNothingElse) {
  settings_.strategy.kind = StrategyKind::kSearch;
  settings_.strategy.max_trials = 3;
  store_plan(batches(12));
  run_all(fine);
  const auto searched = ran_;
  ran_.clear();
  store_plan(batches(12));
  settings_.strategy.audit = 0.999999;
  run_all(fine);
  EXPECT_EQ(ran_.size(), 9u) << "all that the search left out";
  const auto table = store_->query("SELECT count(*) FROM results WHERE rule = 'search' AND outcome = 'ok'");
  EXPECT_EQ(std::get<i64>(table->rows[0][0]), 9);
  for (const i64 size : searched) EXPECT_EQ(std::count(ran_.begin(), ran_.end(), size), 0);
}

TEST_F(GuideTest, TwoAllocationsAtOnceConcludeTheSame) {
  settings_.strategy.history = true;
  auto entries = batches(12);
  for (auto& e : entries) e.predicted.seconds = 3600;
  store_plan(entries);
  Bounds bounds;
  bounds.max_allocations = 2, bounds.max_nodes = 2, bounds.min_work_per_node_s = 60;
  const auto end = run_by_shape(
      [&](const Attempt& a) {
        ran_.push_back(a.trial.micro_batch_size);
        return fits_to_four(a);
      },
      bounds);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone) << end->why;
  EXPECT_EQ(count(Outcome::kOk), 4);
  EXPECT_EQ(ruled_out_by("history") + static_cast<i64>(ran_.size()), 12);
}

TEST_F(GuideTest, AnAutomaticMicroBatchTriesFewSizesOfEachLayout) {
  settings_.strategy.auto_micro_batch = true;
  store_plan(batches(64));
  run_all(
      [](const Attempt& a) { return a.trial.micro_batch_size > 20 ? FakeOutcome::kOom : FakeOutcome::kOk; });
  EXPECT_LE(ran_.size(), 14u);
  EXPECT_EQ(ran_.front(), 1);
  EXPECT_EQ(std::count(ran_.begin(), ran_.end(), 20), 1);
  EXPECT_EQ(exit_code_for(*store_->progress(sweep_)), 0);
}

TEST_F(GuideTest, WhatIsToRunAgainRunsBesideASearchThatHasDecided) {
  settings_.strategy.kind = StrategyKind::kSearch;
  settings_.strategy.max_trials = 4;
  store_plan(batches(12));
  run_all(
      [](const Attempt& a) { return a.trial.micro_batch_size == 12 ? FakeOutcome::kOom : FakeOutcome::kOk; });
  ASSERT_EQ(count(Outcome::kOom), 1);
  const auto before = ran_.size();
  const Outcome oom[] = {Outcome::kOom};
  ASSERT_TRUE(store_->reopen(sweep_, oom));
  run_all(fine);
  EXPECT_EQ(ran_.size(), before + 1);
  EXPECT_EQ(ran_.back(), 12);
  EXPECT_EQ(count(Outcome::kOom), 0);
}

TEST_F(GuideTest, ASearchOverAllocationsOfItsShape) {
  settings_.strategy.kind = StrategyKind::kSearch;
  settings_.strategy.max_trials = 3;
  auto entries = batches(6);
  for (auto& e : entries) {
    e.trial.nodes = e.trial.dp = 1 + e.trial.micro_batch_size % 2;
    e.trial.global_batch_size *= e.trial.dp;
    e.id = trial_id(e.trial);
  }
  store_plan(entries);
  const auto end = run_by_shape(
      [&](const Attempt& a) {
        ran_.push_back(a.trial.micro_batch_size);
        return FakeOutcome::kOk;
      },
      {});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone) << end->why;
  EXPECT_EQ(ran_.size(), 3u);
  EXPECT_EQ(ruled_out_by("search"), 3);
}

struct Kind {
  const char* name;
  StrategyKind kind;
  bool auto_micro_batch;
};
class EveryChoosingStrategy : public GuideTest, public ::testing::WithParamInterface<Kind> {
 protected:
  void use_strategy() {
    settings_.strategy.kind = GetParam().kind;
    settings_.strategy.auto_micro_batch = GetParam().auto_micro_batch;
    settings_.strategy.max_trials = 6;
    store_plan(batches(12));
  }
};
INSTANTIATE_TEST_SUITE_P(Guide, EveryChoosingStrategy,
                         ::testing::Values(Kind{"search", StrategyKind::kSearch, false},
                                           Kind{"playbook", StrategyKind::kPlaybook, false},
                                           Kind{"batch", StrategyKind::kBatch, false},
                                           Kind{"auto_sizes", StrategyKind::kGrid, true}),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(EveryChoosingStrategy, GoesOnAfterATrialThatCrashesOnce) {
  use_strategy();
  run_all([&](const Attempt&) { return ran_.size() == 1 ? FakeOutcome::kCrash : FakeOutcome::kOk; });
  EXPECT_GT(ran_.size(), 2u);
  EXPECT_EQ(std::count(ran_.begin(), ran_.end(), ran_.front()), 2);
  EXPECT_EQ(store_->progress(sweep_)->pending, 0);
  EXPECT_EQ(count(Outcome::kCrash), 0);
}

TEST_P(EveryChoosingStrategy, GoesOnWhereARunEndedBetweenACrashAndItsRetry) {
  use_strategy();
  const auto end = run_with([&](const Attempt& a) {
    ran_.push_back(a.trial.micro_batch_size);
    return ran_.size() == 1 ? FakeOutcome::kCrash : FakeOutcome::kRefusePost;
  });
  ASSERT_FALSE(end && end->end == End::kDone);
  const i64 first = ran_.front();
  ran_.clear();
  run_all(fine);
  EXPECT_EQ(ran_.front(), first) << "nothing else is known";
  EXPECT_EQ(store_->progress(sweep_)->pending, 0);
}

TEST_F(GuideTest, InterruptedAttemptsUseUpNoTrialOfASearch) {
  settings_.strategy.kind = StrategyKind::kSearch;
  settings_.strategy.max_trials = 3;
  store_plan(batches(12));
  std::set<i64> lost;
  run_all([&](const Attempt& a) {
    return lost.insert(a.trial.micro_batch_size).second ? FakeOutcome::kLoseAllocation : FakeOutcome::kOk;
  });
  EXPECT_EQ(count(Outcome::kOk), 3);
}

TEST_F(GuideTest, ResultsThatAreMeasuredAgainCountUntilThen) {
  settings_.strategy.kind = StrategyKind::kSearch;
  settings_.strategy.max_trials = 4;
  store_plan(batches(12));
  run_all(fine);
  const Outcome ok[] = {Outcome::kOk};
  ASSERT_TRUE(store_->reopen(sweep_, ok));
  store_plan(batches(12));  // `sweep run` opens what the search left out
  ran_.clear();
  run_all(fine);
  EXPECT_EQ(ran_.size(), 4u) << "no others";
  EXPECT_EQ(count(Outcome::kOk), 4);
}

TEST_F(GuideTest, TrialsThatNeedMoreNodesThanTheRunMayHoldStayPendingAndStopNoSearch) {
  settings_.strategy.kind = StrategyKind::kSearch;
  settings_.strategy.max_trials = 3;
  auto entries = batches(8);
  for (auto& e : entries) {
    if (e.trial.micro_batch_size <= 4) continue;
    e.trial.nodes = e.trial.dp = 4, e.trial.global_batch_size *= 4;
    e.id = trial_id(e.trial);
  }
  store_plan(entries);
  Bounds bounds;
  bounds.max_nodes = 2;
  const auto end = must(run_by_shape(fine, bounds));
  EXPECT_EQ(end.end, End::kBroken);
  EXPECT_EQ(count(Outcome::kOk), 3);
  EXPECT_EQ(ruled_out_by("search"), 1);
  EXPECT_EQ(store_->progress(sweep_)->pending, 4);
}

}  // namespace
}  // namespace sweep::run
