// Plans, attempts, retries and verdicts.
#include "store_fixture.h"

namespace sweep::store {
namespace {

using Text = std::string;
const Value kNull = std::monostate{};

class WorkTest : public StoreTest {};

TEST_F(WorkTest, EveryTrialOfThePlanHasOneRowAndNoOutcomeYet) {
  start(3);
  EXPECT_EQ(column("outcome"), (std::vector<Value>{kNull, kNull, kNull}));
  EXPECT_EQ(must(store_->pending(sweep_, 10)).size(), 3u);
  for (const auto& row : must(store_->results(sweep_))) EXPECT_EQ(row.state, State::kPending);
}

TEST_F(WorkTest, AnOkAttemptIsFinalWithItsMetrics) {
  start(1);
  finish(plan_[0], Outcome::kOk, 123.5);
  EXPECT_EQ(column("outcome"), (std::vector<Value>{Text("ok")}));
  EXPECT_EQ(column("tokens_per_s"), (std::vector<Value>{123.5}));
  EXPECT_EQ(column("mfu"), (std::vector<Value>{kNull}));
  EXPECT_EQ(column("attempts"), (std::vector<Value>{i64{1}}));
  EXPECT_EQ(column("finished_at"), (std::vector<Value>{Text("2023-11-14T22:13:20.000Z")}));
  EXPECT_EQ(column("predicted_bytes"), (std::vector<Value>{i64{1000}}));
  EXPECT_TRUE(must(store_->pending(sweep_, 10)).empty());
}

TEST_F(WorkTest, ResultRowsCarryTheWholeTrial) {
  start(1);
  finish(plan_[0], Outcome::kOk, 1);
  const auto rows = must(store_->results(sweep_));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].trial, plan_[0].trial);
  EXPECT_EQ(rows[0].sweep, "s");
  EXPECT_EQ(rows[0].metrics.predicted_ms, 1.5);
}

TEST_F(WorkTest, APostedTrialIsNotOfferedTwice) {
  start(2);
  begin(plan_[0]);
  const auto waiting = must(store_->pending(sweep_, 10));
  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_EQ(waiting[0].entry.id, plan_[1].id);
  EXPECT_EQ(waiting[0].entry.trial, plan_[1].trial);
  Attempt again;
  again.trial_id = plan_[0].id, again.trial = plan_[0].trial;
  EXPECT_FALSE(store_->begin_attempt(sweep_, allocation_, again));
}

TEST_F(WorkTest, AnAttemptIsReadAsItWasPosted) {
  start(1);
  Attempt wanted;
  wanted.trial_id = plan_[0].id, wanted.trial = plan_[0].trial;
  wanted.measure = {1, 2, 3, true}, wanted.deadlines = {1, 2, 3, 4, 5, 6}, wanted.log_limit_bytes = 7;
  wanted.usd_per_node_hour = 8, wanted.checkpoint_folder = "/scratch", wanted.predicted_s = 9;
  wanted.stop_above_ms = 10, wanted.rehearsed_ranks = {0, 1}, wanted.start = RankStart::kExec;
  const Attempt posted = must(store_->begin_attempt(sweep_, allocation_, wanted));
  const auto found = must(store_->unfinished_attempts(allocation_));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].attempt, posted);
}

TEST_F(WorkTest, ARequestThatCannotBeReadIsRefused) {
  start(1);
  begin(plan_[0]);
  for (const char* request : {"no JSON", R"({"measure": 1})"}) {
    sql(std::string("UPDATE attempt SET request = '") + request + "'");
    EXPECT_THAT(error_in(store_->unfinished_attempts(allocation_)),
                IsError(ErrorKind::kUnreadable, "request"));
  }
}

TEST_F(WorkTest, ACrashIsTriedOnceMoreThenStands) {
  start(1);
  finish(plan_[0], Outcome::kCrash);
  auto waiting = must(store_->pending(sweep_, 10));
  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_EQ(waiting[0].attempts, 1);
  EXPECT_EQ(column("outcome"), (std::vector<Value>{Text("crash")}));
  EXPECT_EQ(must(store_->progress(sweep_)).pending, 1);
  finish(plan_[0], Outcome::kCrash);
  EXPECT_TRUE(must(store_->pending(sweep_, 10)).empty());
  EXPECT_EQ(must(store_->progress(sweep_)).by_outcome,
            (std::vector<std::pair<Outcome, i64>>{{Outcome::kCrash, 1}}));
}

TEST_F(WorkTest, RetriesComeFromTheSweepsOptions) {
  start(2, R"({"retries_crash": 0, "retries_hang": 1})");
  finish(plan_[0], Outcome::kCrash);
  finish(plan_[1], Outcome::kHang);
  const auto waiting = must(store_->pending(sweep_, 10));
  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_EQ(waiting[0].entry.id, plan_[1].id);
}

TEST_F(WorkTest, OptionsThatCannotBeReadAreRefusedEverywhere) {
  start(2);
  const Attempt attempt = begin(plan_[0]);
  sql("UPDATE sweep SET options_json = 'no JSON'");
  const auto refused = IsError(ErrorKind::kUnreadable, "options_json");
  EXPECT_THAT(error_in(store_->sweeps()), refused);
  EXPECT_THAT(error_in(store_->find_sweep("s")), refused);
  EXPECT_THAT(error_in(store_->reuse(sweep_, "1", "")), refused);
  EXPECT_THAT(error_in(store_->finish_attempt(verdict(attempt, Outcome::kOk))), refused);
}

TEST_F(WorkTest, WithoutTheRulesOfTheSweepNoResultIsStored) {
  start(1);
  const Attempt attempt = begin(plan_[0]);
  StoreDependencies without = quick();
  without.decide_trial = {};
  must(store_->release_lease(sweep_));
  store_ = open(std::move(without));
  EXPECT_FALSE(store_->finish_attempt(verdict(attempt, Outcome::kOk)));
  EXPECT_FALSE(must(store_->result_of(attempt.id))) << "the result and the decision are one transaction";
}

TEST_F(WorkTest, TheRulesSeeEveryAttemptAndTheirDecisionIsWritten) {
  start(1, R"({"retries_crash": 7})");
  finish(plan_[0], Outcome::kCrash);
  const Attempt second = begin(plan_[0]);
  std::vector<PastAttempt> seen;
  StoreDependencies asked = quick();
  asked.decide_trial = [&](const TrialHistory& trial, const SweepOptions& options) {
    EXPECT_EQ(options.retries_crash, 7);
    seen = trial.attempts;
    return TrialDecision{State::kFinished, trial.attempts.at(0).id, Outcome::kCrash};
  };
  must(store_->release_lease(sweep_));
  store_ = open(std::move(asked));
  must(store_->finish_attempt(verdict(second, Outcome::kCancelled)));
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].outcome, Outcome::kCrash);
  EXPECT_EQ(seen[1].outcome, Outcome::kCancelled);
  EXPECT_EQ(must(store_->final_attempt(sweep_, plan_[0].id)), seen[0].id);
  EXPECT_EQ(must(store_->progress(sweep_)).pending, 0);
}

TEST_F(WorkTest, ALostNodeIsNeverFinalUntilItsRetriesAreUsedUp) {
  start(1);
  for (int lost = 1; lost <= 3; ++lost) {
    finish(plan_[0], Outcome::kNodeLost);
    const auto waiting = must(store_->pending(sweep_, 10));
    ASSERT_EQ(waiting.size(), 1u) << lost;
    EXPECT_EQ(waiting[0].infra_attempts, lost);
    EXPECT_EQ(waiting[0].attempts, 0);
    EXPECT_EQ(column("outcome"), (std::vector<Value>{kNull}));
  }
  finish(plan_[0], Outcome::kNodeLost);
  EXPECT_TRUE(must(store_->pending(sweep_, 10)).empty());
  EXPECT_EQ(column("outcome"), (std::vector<Value>{Text("node_lost")}));
}

TEST_F(WorkTest, ANewRunTriesLostTrialsAgain) {
  start(1, R"({"retries_infra": 0})");
  finish(plan_[0], Outcome::kNodeLost);
  EXPECT_TRUE(must(store_->pending(sweep_, 10)).empty());
  must(store_->release_lease(sweep_));
  must(store_->take_lease(sweep_));
  EXPECT_EQ(must(store_->pending(sweep_, 10)).size(), 1u);
  EXPECT_EQ(column("outcome"), (std::vector<Value>{kNull}));
  EXPECT_EQ(column("attempts"), (std::vector<Value>{i64{1}}));
}

TEST_F(WorkTest, CancelledAttemptsNeverUseUpATrial) {
  start(1);
  for (int i = 0; i < 10; ++i) finish(plan_[0], Outcome::kCancelled);
  EXPECT_EQ(must(store_->pending(sweep_, 10)).size(), 1u);
}

TEST_F(WorkTest, TheFinalAttemptIsTheLastWithoutAnInfrastructureFailure) {
  start(1, R"({"retries_infra": 0})");
  finish(plan_[0], Outcome::kCrash);
  finish(plan_[0], Outcome::kNodeLost);
  EXPECT_EQ(column("outcome"), (std::vector<Value>{Text("crash")}));
  EXPECT_EQ(column("attempts"), (std::vector<Value>{i64{2}}));
}

TEST_F(WorkTest, ReopenKeepsTheOldAnswerVisibleUntilTheNewOneIsThere) {
  start(2);
  finish(plan_[0], Outcome::kOom);
  finish(plan_[1], Outcome::kOk, 1);
  const Outcome which[] = {Outcome::kOom};
  must(store_->reopen(sweep_, which));
  const auto waiting = must(store_->pending(sweep_, 10));
  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_EQ(waiting[0].attempts, 0) << "reopening gives fresh retries";
  EXPECT_EQ(column("outcome"), (std::vector<Value>{Text("oom"), Text("ok")}));
  finish(plan_[0], Outcome::kOk, 2);
  EXPECT_EQ(column("outcome"), (std::vector<Value>{Text("ok"), Text("ok")}));
}

TEST_F(WorkTest, PrunedTrialsAreRowsWithAReasonAndNoMeasurement) {
  start(1);
  PlanEntry pruned = entry(7);
  pruned.admitted = false, pruned.verdict = Outcome::kPruned, pruned.rule = "memory",
  pruned.reason = "too big";
  PlanEntry unsupported = entry(8);
  unsupported.admitted = false, unsupported.verdict = Outcome::kUnsupported, unsupported.reason = "not yet";
  plan_.insert(plan_.end(), {pruned, unsupported});
  EXPECT_EQ(must(store_->sync_plan(sweep_, plan_, {})).pruned, 2);
  EXPECT_EQ(column("outcome"), (std::vector<Value>{kNull, Text("pruned"), Text("unsupported")}));
  EXPECT_EQ(column("reason"), (std::vector<Value>{kNull, Text("too big"), Text("not yet")}));
  EXPECT_EQ(must(store_->pending(sweep_, 10)).size(), 1u);
  EXPECT_EQ(must(store_->results(sweep_)).size(), 3u);
}

TEST_F(WorkTest, AnEditedGridRetiresAndTakesBackWithoutLosingResults) {
  start(3);
  finish(plan_[0], Outcome::kOk, 10);
  const std::vector<PlanEntry> without(plan_.begin() + 1, plan_.end());
  SyncCounts counts = must(store_->sync_plan(sweep_, without, {}));
  EXPECT_EQ(counts.retired, 1);
  EXPECT_EQ(counts.kept, 2);
  EXPECT_EQ(column("trial").size(), 2u);
  EXPECT_TRUE(must(store_->best(sweep_, "tokens_per_s", 1)).empty()) << "a retired trial is not ranked";
  EXPECT_EQ(must(store_->progress(sweep_)).retired, 1);
  counts = must(store_->sync_plan(sweep_, plan_, {}));
  EXPECT_EQ(counts.reopened, 1);
  EXPECT_EQ(counts.retired, 0);
  EXPECT_EQ(column("outcome"), (std::vector<Value>{Text("ok"), kNull, kNull}));
  EXPECT_EQ(must(store_->best(sweep_, "tokens_per_s", 1)).size(), 1u);
}

TEST_F(WorkTest, AMeasuredTrialKeepsItsResultWhenThePlanPrunesIt) {
  start(1);
  finish(plan_[0], Outcome::kOk, 10);
  plan_[0].admitted = false, plan_[0].reason = "cannot fit";
  must(store_->sync_plan(sweep_, plan_, {}));
  EXPECT_EQ(column("outcome"), (std::vector<Value>{Text("ok")}));
}

TEST_F(WorkTest, ATrialAdmittedAfterBeingPrunedIsPending) {
  start(1);
  plan_[0].admitted = false, plan_[0].reason = "cannot fit";
  must(store_->sync_plan(sweep_, plan_, {}));
  EXPECT_TRUE(must(store_->pending(sweep_, 10)).empty());
  plan_[0].admitted = true, plan_[0].reason = "";
  must(store_->sync_plan(sweep_, plan_, {}));
  EXPECT_EQ(must(store_->pending(sweep_, 10)).size(), 1u);
}

TEST_F(WorkTest, SyncingTheSamePlanTwiceChangesNothing) {
  start(3);
  finish(plan_[1], Outcome::kOk, 10);
  const SyncCounts counts = must(store_->sync_plan(sweep_, plan_, {}));
  EXPECT_EQ(counts.kept, 3);
  EXPECT_EQ(counts.added + counts.retired + counts.reopened, 0);
}

TEST_F(WorkTest, PendingFollowsThePlansOrder) {
  start(3);
  plan_[0].order = 9;
  must(store_->sync_plan(sweep_, plan_, {}));
  const auto waiting = must(store_->pending(sweep_, 2));
  ASSERT_EQ(waiting.size(), 2u);
  EXPECT_EQ(waiting[0].entry.id, plan_[1].id);
  EXPECT_EQ(must(store_->plan(sweep_)).back().id, plan_[0].id);
}

TEST_F(WorkTest, UnfinishedAttemptsComeBackWholeAfterACrash) {
  start(1);
  Attempt wanted;
  wanted.trial_id = plan_[0].id, wanted.trial = plan_[0].trial;
  wanted.measure.steps = 77, wanted.deadlines.step_s = 3.25, wanted.start = RankStart::kExec;
  const Attempt begun = must(store_->begin_attempt(sweep_, allocation_, wanted));
  store_ = open();
  const auto left = must(store_->unfinished_attempts(allocation_));
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].attempt, begun);
  EXPECT_EQ(left[0].state, State::kPosted);
  ASSERT_EQ(must(store_->open_allocations(sweep_)).size(), 1u);
  EXPECT_EQ(must(store_->open_allocations(sweep_))[0].id, allocation_);
}

TEST_F(WorkTest, TheLastReportOfAnAttemptIsItsRecords) {
  start(1);
  const i64 attempt = finish(plan_[0], Outcome::kOom);
  Result late;
  late.attempt = attempt, late.outcome = Outcome::kNodeLost;
  must(store_->finish_attempt(late));
  EXPECT_EQ(must(store_->result_of(attempt))->outcome, Outcome::kOom);
}

TEST_F(WorkTest, RecordsReplaceAVerdictWithoutRecords) {
  start(1);
  const Attempt attempt = begin(plan_[0]);
  must(store_->finish_attempt(verdict(attempt, Outcome::kNodeLost)));
  IngestBatch batch;
  batch.allocation = allocation_, batch.new_offset = 10;
  batch.results = {verdict(attempt, Outcome::kOk, 4)};
  must(store_->ingest(batch));
  EXPECT_EQ(column("outcome"), (std::vector<Value>{Text("ok")}));
}

TEST_F(WorkTest, TwoSweepsShareATrialButNotItsResult) {
  start(1);
  finish(plan_[0], Outcome::kOk, 10);
  SweepRow other;
  other.name = "t";
  const i64 second = must(store_->ensure_sweep(other)).id;
  must(store_->sync_plan(second, plan_, {}));
  EXPECT_EQ(must(store_->pending(second, 10)).size(), 1u);
  EXPECT_EQ(must(store_->find_sweep(std::nullopt)).name, "t");
  EXPECT_THAT(error_in(store_->find_sweep("u")), IsError(ErrorKind::kNotFound, "u"));
}

TEST_F(WorkTest, TrialsAreFoundByThePrefixOfTheirId) {
  start(20);
  EXPECT_EQ(must(store_->find_trial(sweep_, plan_[3].id)), plan_[3].id);
  EXPECT_EQ(must(store_->find_trial(sweep_, plan_[3].id.substr(0, 10))), plan_[3].id);
  EXPECT_THAT(error_in(store_->find_trial(sweep_, "zz")), IsError(ErrorKind::kInvalidValue, "zz"));
  EXPECT_THAT(error_in(store_->find_trial(sweep_, "")), IsError(ErrorKind::kInvalidValue, ""));
  EXPECT_THAT(error_in(store_->find_trial(sweep_, plan_[3].id + "0")), IsError(ErrorKind::kNotFound));
}

TEST_F(WorkTest, AnEventNamesTheAttemptItIsAbout) {
  start(1);
  const i64 attempt = finish(plan_[0], Outcome::kOk, 5);
  must(store_->add_event(sweep_, EventKind::kAgent, "worded in any way", attempt));
  must(store_->add_event(sweep_, EventKind::kPending, "of the sweep"));
  const auto events = must(store_->events(sweep_, 10));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].attempt, attempt);
  EXPECT_EQ(events[1].attempt, std::nullopt);
}

TEST_F(WorkTest, TheKindOfAnEventOfANewerVersionKeepsItsWord) {
  start(1);
  must(store_->add_event(sweep_, EventKind::kScreen, "slow"));
  sql(fmt::format("INSERT INTO event(sweep, unix_ns, kind, text) VALUES ({}, {}, 'thawed', 't')", sweep_,
                  INT64_MAX));
  const auto events = must(store_->events(sweep_, 10));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, EventKind::kScreen);
  EXPECT_EQ(events[0].word, "screen");
  EXPECT_EQ(events[1].kind, EventKind::kOther);
  EXPECT_EQ(events[1].word, "thawed");
  EXPECT_EQ(must(store_->first_event_but(EventKind::kScreen)), "t");
}

TEST_F(WorkTest, AChangedMeasuringPlanIsAnEvent) {
  start(1);
  MeasurePlan longer;
  longer.steps = 99;
  must(store_->sync_plan(sweep_, plan_, longer));
  const auto events = must(store_->events(sweep_, 10));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, EventKind::kMeasureChanged);
}

}  // namespace
}  // namespace sweep::store
