// Trials that a strategy does not run, and answers taken over from another sweep.
#include "store_fixture.h"

namespace sweep::store {
namespace {

using Text = std::string;

class StrategyRowsTest : public StoreTest {
 protected:
  // Another sweep of the same plan, with its lease.
  i64 another(const std::string& options) {
    SweepRow row;
    row.name = "again", row.options = must(sweep_options_from(options));
    const i64 id = must(store_->ensure_sweep(row)).id;
    must(store_->sync_plan(id, plan_, {}));
    EXPECT_FALSE(must(store_->take_lease(id)).has_value());
    return id;
  }
};

TEST_F(StrategyRowsTest, WhatIsRuledOutIsPrunedUntilThePlanIsStoredAnew) {
  start(3);
  finish(plan_[0], Outcome::kOk, 10);
  const NotRun rows[] = {{plan_[0].id, "search", "measured"}, {plan_[1].id, "search", "little to gain"}};
  must(store_->rule_out(sweep_, rows));
  EXPECT_EQ(column("outcome"), (std::vector<Value>{Text("ok"), Text("pruned"), std::monostate{}}));
  EXPECT_EQ(column("rule")[1], Value(Text("search")));
  EXPECT_EQ(column("reason")[1], Value(Text("little to gain")));
  EXPECT_EQ(must(store_->pending(sweep_, 10)).size(), 1u);
  must(store_->sync_plan(sweep_, plan_, {}));
  EXPECT_EQ(must(store_->pending(sweep_, 10)).size(), 2u);
}

TEST_F(StrategyRowsTest, AnswersOfAnotherSweepOfTheSameBuildAreTakenOver) {
  start(4, R"({"build":"1"})");
  finish(plan_[0], Outcome::kOk, 10), finish(plan_[1], Outcome::kOom), finish(plan_[2], Outcome::kInvalid);
  const i64 again = another(R"({"build":"1"})");
  const auto reused = must(store_->reuse(again, "1", ""));
  EXPECT_EQ(reused.trials, 2);
  EXPECT_EQ(reused.sweeps, std::vector<std::string>{"s"});
  const auto rows = must(store_->results(again));
  EXPECT_EQ(rows[0].outcome, Outcome::kOk);
  EXPECT_EQ(rows[0].metrics.tokens_per_s, 10);
  EXPECT_EQ(rows[0].attempts, 0) << "no attempt of its own";
  EXPECT_EQ(rows[1].outcome, Outcome::kOom);
  EXPECT_EQ(must(store_->pending(again, 10)).size(), 2u);
  EXPECT_EQ(must(store_->reuse(again, "1", "")).trials, 0) << "once";
  const Outcome ok[] = {Outcome::kOk};
  must(store_->reopen(again, ok));
  EXPECT_EQ(must(store_->pending(again, 10)).size(), 3u) << "`--retry ok` measures it here";
}

TEST_F(StrategyRowsTest, AReusedAnswerStandsWhenThePlanChanges) {
  start(1, R"({"build":"1"})");
  finish(plan_[0], Outcome::kOk, 10);
  const i64 again = another(R"({"build":"1"})");
  ASSERT_EQ(must(store_->reuse(again, "1", "")).trials, 1);
  plan_[0].predicted.step_ms = 99;
  must(store_->sync_plan(again, plan_, {}));
  EXPECT_EQ(must(store_->pending(again, 10)).size(), 0u);
  EXPECT_EQ(must(store_->results(again))[0].metrics.tokens_per_s, 10);
}

TEST_F(StrategyRowsTest, ReusedAnswersAreMerged) {
  start(2, R"({"build":"1"})");
  finish(plan_[0], Outcome::kOk, 10);
  ASSERT_EQ(must(store_->reuse(another(R"({"build":"1"})"), "1", "")).trials, 1);
  for (const auto& sweep : must(store_->sweeps())) must(store_->release_lease(sweep.id));
  store_.reset();
  const fs::path from = std::exchange(path_, dir_ / "into.db");
  store_ = open();
  ASSERT_EQ(must(store_->merge(std::vector<fs::path>{from})).front().attempts, 1);
  const i64 again = must(store_->find_sweep("again")).id;
  const auto rows = must(store_->results(again));
  EXPECT_EQ(rows[0].outcome, Outcome::kOk);
  EXPECT_EQ(rows[0].metrics.tokens_per_s, 10);
  EXPECT_EQ(rows[0].attempts, 0) << "it was not run for this sweep";
  EXPECT_EQ(rows[1].state, State::kPending);
  EXPECT_EQ(must(store_->merge(std::vector<fs::path>{from})).front().attempts, 0) << "again changes nothing";
}

TEST_F(StrategyRowsTest, ATrialThatWasStoppedEarlyIsNoAnswerForAnotherSweep) {
  start(1, R"({"build":"1"})");
  finish(plan_[0], Outcome::kOk, 10);
  sql("UPDATE result SET steps_saved = 4");
  EXPECT_EQ(must(store_->reuse(another(R"({"build":"1"})"), "1", "")).trials, 0);
  EXPECT_TRUE(must(store_->best(sweep_, "tokens_per_s", 1)).empty()) << "and it is never the best";
}

TEST_F(StrategyRowsTest, AnAuditedTrialKeepsTheRuleAndIsRun) {
  start(2);
  const NotRun rows[] = {{plan_[0].id, "history", "why", true}, {plan_[1].id, "history", "why"}};
  EXPECT_EQ(must(store_->rule_out(sweep_, rows)).size(), 2u);
  const auto waiting = must(store_->pending(sweep_, 10));
  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_EQ(waiting[0].entry.id, plan_[0].id);
  EXPECT_EQ(waiting[0].entry.rule, "history");
  finish(plan_[0], Outcome::kOk, 1);
  EXPECT_EQ(column("rule")[0], Value(Text("history")));
  EXPECT_EQ(column("outcome")[0], Value(Text("ok")));
}

TEST_F(StrategyRowsTest, WhatWasConcludedFromAnOomIsOpenAgainWithIt) {
  start(3);
  finish(plan_[0], Outcome::kOom);
  const NotRun rows[] = {{plan_[1].id, "history", "why"}, {plan_[2].id, "search", "why"}};
  must(store_->rule_out(sweep_, rows));
  ASSERT_TRUE(must(store_->pending(sweep_, 10)).empty());
  const Outcome oom[] = {Outcome::kOom};
  must(store_->reopen(sweep_, oom));
  EXPECT_EQ(must(store_->pending(sweep_, 10)).size(), 2u)
      << "the one that ran out of memory, and what followed";
  EXPECT_EQ(column("outcome")[2], Value(Text("pruned")));
}

TEST_F(StrategyRowsTest, AnAnswerOfTheSameGpuCountsFromAnyHost) {
  start(1, R"({"build":"1"})");
  plan_[0].trial.hardware = "a100-80gb", plan_[0].id = trial_id(plan_[0].trial);
  must(store_->sync_plan(sweep_, plan_, {}));
  finish(plan_[0], Outcome::kOk, 10);
  EXPECT_EQ(must(store_->reuse(another(R"({"build":"2"})"), "2", "elsewhere")).trials, 0) << "another build";
  sql("UPDATE sweep SET options_json = '{\"build\":\"1\",\"rehearse_ranks\":8}' WHERE name = 's'");
  EXPECT_EQ(must(store_->reuse(another(R"({"build":"1"})"), "1", "elsewhere")).trials, 0) << "phantoms";
  sql("UPDATE sweep SET options_json = '{\"build\":\"1\"}' WHERE name = 's'");
  EXPECT_EQ(must(store_->reuse(another(R"({"build":"1"})"), "1", "elsewhere")).trials, 1);
}

TEST_F(StrategyRowsTest, AnotherBuildOrHostIsNoAnswer) {
  start(1, R"({"build":"1"})");
  finish(plan_[0], Outcome::kOk, 10);
  EXPECT_EQ(must(store_->reuse(another(R"({"build":"2"})"), "2", "")).trials, 0);
  EXPECT_EQ(must(store_->reuse(another(R"({"build":"1"})"), "1", "elsewhere")).trials, 0);
}

}  // namespace
}  // namespace sweep::store
