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
    row.name = "again", row.options_json = options;
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

TEST_F(StrategyRowsTest, AnotherBuildOrHostIsNoAnswer) {
  start(1, R"({"build":"1"})");
  finish(plan_[0], Outcome::kOk, 10);
  EXPECT_EQ(must(store_->reuse(another(R"({"build":"2"})"), "2", "")).trials, 0);
  EXPECT_EQ(must(store_->reuse(another(R"({"build":"1"})"), "1", "elsewhere")).trials, 0);
}

}  // namespace
}  // namespace sweep::store
