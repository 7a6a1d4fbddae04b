#include <fstream>

#include "orchestrator/launch/allocation_record.h"
#include "orchestrator/run/recovery.h"
#include "schema/spool.h"
#include "tests/support/must.h"
#include "tests/unit/run/sweep_runner_fixture.h"

namespace sweep::run {
namespace {

TEST_F(SweepRunnerTest, RunsEveryTrialOnceAndIsDone) {
  plan(7);
  const auto end = run_with([](const Attempt&) { return FakeOutcome::kOk; });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone);
  EXPECT_EQ(count(Outcome::kOk), 7);
  EXPECT_EQ(observer_.results.size(), 7u);
  EXPECT_EQ(exit_code_for(*store_->progress(sweep_)), 0);
  EXPECT_NEAR(*observer_.results[0].metrics.step_ms, 1.0, 1e-9);
}

TEST_F(SweepRunnerTest, TornOutboxPiecesCountEachRecordOnce) {
  plan(3);
  for (const std::size_t chunk : {1u, 7u, 100u}) {
    const auto end = run_with([](const Attempt&) { return FakeOutcome::kOk; }, chunk);
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(count(Outcome::kOk), 3);
  }
  EXPECT_EQ(observer_.results.size(), 3u);
}

TEST_F(SweepRunnerTest, AnOomIsAnAnswerAndACrashIsTriedOnceMore) {
  plan(2);
  std::map<std::string, int> tries;
  const auto end = run_with([&](const Attempt& a) {
    ++tries[a.trial_id];
    return a.trial.seq_len == 64 ? FakeOutcome::kOom : FakeOutcome::kCrash;
  });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(count(Outcome::kOom), 1);
  EXPECT_EQ(count(Outcome::kCrash), 1);
  for (const auto& [id, n] : tries) EXPECT_LE(n, 2);
  EXPECT_EQ(exit_code_for(*store_->progress(sweep_)), 1);
  EXPECT_FALSE(observer_.results[0].metrics.step_ms) << "a failed attempt has no speed";
}

TEST_F(SweepRunnerTest, ALostAllocationIsReplacedAndItsTrialsRunAgain) {
  plan(4);
  bool lost = false;
  const auto end = run_with([&](const Attempt& a) {
    if (a.trial.seq_len == 66 && !lost) return lost = true, FakeOutcome::kLoseAllocation;
    return FakeOutcome::kOk;
  });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone);
  EXPECT_EQ(count(Outcome::kOk), 4);
}

TEST_F(SweepRunnerTest, TheCircuitBreakerOpensWhenEveryAllocationIsLost) {
  plan(4);
  const auto end = run_with([](const Attempt&) { return FakeOutcome::kLoseAllocation; });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kBroken);
  EXPECT_NE(end->why.find("doctor"), std::string::npos);
  EXPECT_EQ(exit_code_for(*store_->progress(sweep_)), 1);
}

TEST_F(SweepRunnerTest, TheCircuitBreakerStaysShutWhereMostAllocationsWork) {
  plan(16);
  std::set<i64> lost;
  Bounds bounds{8, 8, 120};
  bounds.most_nodes_each = 1;
  const auto end = run_by_shape(
      [&](const Attempt& a) {
        const bool first =
            lost.size() < 6 && lost.insert(a.trial.seq_len).second;  // three of eight, two each
        return first ? FakeOutcome::kLoseAllocation : FakeOutcome::kOk;
      },
      bounds);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone) << end->why;
  EXPECT_EQ(count(Outcome::kOk), 16);
  EXPECT_EQ(events(EventKind::kAllocationLost).size(), 3u);
}

TEST_F(SweepRunnerTest, AnAllocationThatReleasesItsTrialsGetsNoMore) {
  plan(12);
  i64 given_back = 0;
  const auto end = run_by_shape(
      [&](const Attempt& a) {
        const bool leaving = where_.at(a.trial_id) == requests_.at(0).id && given_back < 1000;
        return leaving ? ++given_back, FakeOutcome::kGiveBack : FakeOutcome::kOk;
      },
      {2, 1, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone) << end->why;
  EXPECT_EQ(count(Outcome::kOk), 12);
  EXPECT_LE(given_back, requests_[0].nodes + settings_.ahead) << "what was in its inbox, and no more";
  ASSERT_EQ(events(EventKind::kAllocationLost).size(), 1u);
  const auto said = events(EventKind::kAgent);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("gets no more work: its agent cancelled attempt 1 (it is leaving)"),
            std::string::npos)
      << said[0];
}

TEST_F(SweepRunnerTest, AllocationsThatReleaseAllTheirTrialsOpenTheCircuitBreaker) {
  plan(4);
  i64 given_back = 0;
  const auto end = run_by_shape(
      [&](const Attempt&) { return ++given_back < 1000 ? FakeOutcome::kGiveBack : FakeOutcome::kOk; },
      {1, 1, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kBroken);
  EXPECT_EQ(requests_.size(), 3u);
  EXPECT_EQ(store_->progress(sweep_)->pending, 4);
}

TEST_F(SweepRunnerTest, AnInboxThatCannotBeWrittenEndsTheRunAndKeepsTheTrialsPending) {
  plan(3);
  const auto end = run_with(
      [](const Attempt& a) { return a.trial.seq_len == 65 ? FakeOutcome::kRefusePost : FakeOutcome::kOk; });
  ASSERT_FALSE(end);
  EXPECT_NE(end.error().message.find("No space left"), std::string::npos);
  EXPECT_TRUE(store_->open_allocations(sweep_)->empty());
  const auto again = run_with([](const Attempt&) { return FakeOutcome::kOk; });
  ASSERT_TRUE(again);
  EXPECT_EQ(count(Outcome::kOk), 3);
}

TEST_F(SweepRunnerTest, TheLimitOfGpuHoursCountsEarlierRunsToo) {
  plan(3);
  // An earlier run held a GPU for eight hours: a second that passes here is little of that.
  const auto earlier = store_->create_allocation(sweep_, "fake", dir_ / "spool");
  ASSERT_TRUE(earlier && store_->allocation_started(earlier->id, "there", 1, {1, 1, 8 * 3600}));
  ASSERT_TRUE(store_->end_allocation(earlier->id, "finished"));
  settings_.gpu_hours = 7.9;
  auto end = run_with([](const Attempt&) { return FakeOutcome::kOk; });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kStopped);
  EXPECT_EQ(end->used_up, Limit::kGpuHours);
  EXPECT_NE(end->why.find("all runs of this sweep held 8"), std::string::npos) << end->why;
  EXPECT_TRUE(requests_.empty()) << "nothing is asked for";
  EXPECT_EQ(store_->progress(sweep_)->pending, 3);

  settings_.usd = 79;
  end = run_with([](const Attempt&) { return FakeOutcome::kOk; });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_NE(end->why.find("79 USD"), std::string::npos) << end->why;
  EXPECT_NE(end->why.find("at most 80 USD"), std::string::npos) << end->why;
  EXPECT_NE(end->why.find("--usd"), std::string::npos) << end->why;
  EXPECT_EQ(end->why.find("--gpu-hours"), std::string::npos) << end->why;
  EXPECT_EQ(end->used_up, Limit::kUsd);

  settings_.limit_of_site = true;
  end = run_with([](const Attempt&) { return FakeOutcome::kOk; });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->used_up, Limit::kSite);

  settings_.gpu_hours = 8.1;
  end = run_with([](const Attempt&) { return FakeOutcome::kOk; });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone) << end->why;
  EXPECT_EQ(count(Outcome::kOk), 3);

  settings_.gpu_hours = 7.9;
  end = run_with([](const Attempt&) { return FakeOutcome::kOk; });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone) << "nothing is left that the limit could stop: " << end->why;
  EXPECT_FALSE(end->used_up);
}

TEST_F(SweepRunnerTest, AnAllocationOfAKilledRunCountsUntilItsLastMessage) {
  plan(1);
  const auto left = store_->create_allocation(sweep_, "fake", dir_ / "spool");
  ASSERT_TRUE(left && store_->allocation_started(left->id, "there", 1, {1, 1, 16 * 3600}));
  std::filesystem::create_directories(left->spool);
  std::ofstream(spool::outbox(left->spool)) << "";
  std::filesystem::last_write_time(spool::outbox(left->spool),
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(8));
  EXPECT_NEAR(gpu_seconds_held(*store_, sweep_)->open, 16 * 3600, 600) << "a run that is heard may hold it";
  ASSERT_TRUE(store_->release_lease(sweep_));
  EXPECT_NEAR(gpu_seconds_held(*store_, sweep_)->open, 8 * 3600, 600);
  ASSERT_FALSE(store_->take_lease(sweep_)->has_value());
  settings_.launcher = "fake";
  const auto end = run_with([](const Attempt&) { return FakeOutcome::kOk; });
  ASSERT_TRUE(end) << end.error().message;
  const auto held = must(store_->gpu_seconds(sweep_));
  EXPECT_NEAR(held.ended, 8 * 3600, 600) << "not until the next run began";
}

TEST_F(SweepRunnerTest, AStopRequestEndsTheRunningAttemptsAndLeavesTheRestPending) {
  plan(9);
  const auto end = run_with([&](const Attempt& a) {
    if (a.trial.seq_len < 66) return FakeOutcome::kOk;
    EXPECT_TRUE(store_->request_stop(sweep_, true));
    return FakeOutcome::kHold;
  });
  ASSERT_TRUE(end);
  EXPECT_EQ(end->end, End::kStopped);
  EXPECT_EQ(count(Outcome::kOk), 2);
  EXPECT_EQ(store_->progress(sweep_)->pending, 7);
}

TEST_F(SweepRunnerTest, AllocationsFollowWhatTrialsNeed) {
  plan(6, {1, 1, 4, 1, 4, 1});
  const auto end = run_by_shape([](const Attempt&) { return FakeOutcome::kOk; }, {4, 3, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone);
  EXPECT_EQ(count(Outcome::kOk), 6);
  ASSERT_EQ(requests_.size(), 1u) << "one allocation of the largest takes the small ones too";
  EXPECT_EQ(requests_[0].nodes, 4);
  EXPECT_EQ(requests_[0].slots, 1) << "a trial has its nodes to itself";
}

TEST_F(SweepRunnerTest, SeveralAllocationsAtOnceAndEveryTrialInOneThatHoldsIt) {
  std::vector<i64> nodes(120, 1);
  nodes[3] = 2;
  plan(120, nodes);
  const auto end = run_by_shape([](const Attempt&) { return FakeOutcome::kOk; }, {5, 3, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(count(Outcome::kOk), 120);
  ASSERT_GE(requests_.size(), 2u);
  i64 nodes_at_first = 0;
  for (std::size_t i = 0; i < 2; ++i) nodes_at_first += requests_[i].nodes;
  EXPECT_LE(nodes_at_first, 5);
  EXPECT_EQ(requests_[0].nodes, 2);
  EXPECT_EQ(requests_[1].nodes, 3) << "two hours of single-node work go side by side";
}

TEST_F(SweepRunnerTest, NoAllocationTakesMoreThanItsPartOfWhatIsLeft) {
  plan(80);
  Bounds bounds{40, 40, {}};
  bounds.most_nodes_each = 1;
  bounds.time_s = 120;  // two trials' worth
  const auto end = run_by_shape([](const Attempt&) { return FakeOutcome::kOk; }, bounds);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(count(Outcome::kOk), 80);
  std::map<launch::AllocationId, i64> taken;
  for (const auto& [trial, where] : where_) ++taken[where];
  EXPECT_EQ(taken.size(), 40u);
  for (const auto& [where, trials] : taken) EXPECT_EQ(trials, 2) << where;
}

TEST_F(SweepRunnerTest, TrialsThatNoAllocationMayRunAreReportedAndStayPending) {
  plan(2, {8, 8});
  const auto end = run_by_shape([](const Attempt&) { return FakeOutcome::kOk; }, {4, 3, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kBroken);
  EXPECT_NE(end->why.find("max_nodes is 4"), std::string::npos) << end->why;
  EXPECT_EQ(store_->progress(sweep_)->pending, 2);
}

TEST_F(SweepRunnerTest, APreemptedTrialUsesNoRetry) {
  plan(1);
  int preempted = 0;
  const auto end = run_by_shape(
      [&](const Attempt&) { return preempted++ < 2 ? FakeOutcome::kPreempt : FakeOutcome::kOk; }, {1, 1, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone);
  EXPECT_EQ(count(Outcome::kOk), 1);
  const auto table = must(store_->query("SELECT outcome FROM result ORDER BY attempt"));
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(std::get<i64>(table.rows[0][0]), static_cast<i64>(Outcome::kCancelled));
}

TEST_F(SweepRunnerTest, AllocationsThatArePreemptedOneAfterTheOtherEndTheRunLate) {
  plan(1);
  int preempted = 0;
  const auto end = run_by_shape(
      [&](const Attempt&) {
        return preempted++ < settings_.max_consecutive_preemptions - 1 ? FakeOutcome::kPreempt
                                                                       : FakeOutcome::kOk;
      },
      {1, 1, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone) << end->why;

  plan(2);  // one trial more
  const auto ended = run_by_shape([](const Attempt&) { return FakeOutcome::kPreempt; }, {1, 1, {}});
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->end, End::kBroken);
  EXPECT_NE(ended->why.find("10 allocations in a row were preempted or cancelled"), std::string::npos)
      << ended->why;
  EXPECT_EQ(store_->progress(sweep_)->pending, 1);
}

TEST_F(SweepRunnerTest, AllocationsWhoseTimeIsUpWithoutAResultOpenTheCircuitBreaker) {
  plan(1);
  seconds_left_ = 60;  // time left when Slurm says that the end is near
  const auto end = run_by_shape([](const Attempt&) { return FakeOutcome::kPreempt; }, {1, 1, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kBroken);
  EXPECT_NE(end->why.find("3 allocations in a row were lost"), std::string::npos) << end->why;
}

TEST_F(SweepRunnerTest, AnAllocationOfAKilledRunIsAdoptedWithWhatRanInIt) {
  plan(3);
  const auto row = must(store_->create_allocation(sweep_, "fake", dir_ / "spool"));
  std::filesystem::create_directories(row.spool);
  Attempt under_way;
  under_way.trial = store_->plan(sweep_)->at(0).trial;
  under_way.trial_id = store_->plan(sweep_)->at(0).id;
  under_way.measure.warmup_steps = 1, under_way.measure.steps = 2;
  ASSERT_TRUE(
      store_->begin_attempt(sweep_, row.id, under_way));  // committed, never posted: the crash came between
  adoptable_[row.id].seconds = 600;
  const auto end = run_by_shape([](const Attempt&) { return FakeOutcome::kOk; }, {1, 1, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(count(Outcome::kOk), 3);
  EXPECT_TRUE(requests_.empty()) << "no second allocation is asked for";
  EXPECT_EQ(where_.size(), 3u);
}

TEST_F(SweepRunnerTest, AnAllocationOfAnotherLauncherThatMayLiveOnIsNotTouched) {
  plan(1);
  const auto row = must(store_->create_allocation(sweep_, "slurm", dir_ / "spool"));
  launch::AllocationRequest request;
  request.id = row.id, request.spool = row.spool;
  std::filesystem::create_directories(row.spool);
  ASSERT_TRUE(launch::keep_record(request, "slurm", nlohmann::json::object()));
  const auto end = run_with([](const Attempt&) { return FakeOutcome::kOk; });
  ASSERT_FALSE(end);
  EXPECT_NE(end.error().message.find("--on slurm"), std::string::npos) << end.error().message;
  EXPECT_NE(end.error().message.find("sweep clean"), std::string::npos) << end.error().message;
  EXPECT_EQ(store_->open_allocations(sweep_)->size(), 1u);

  launch::drop_record(row.spool);  // `sweep clean --yes` does so once it is over
  const auto again = run_with([](const Attempt&) { return FakeOutcome::kOk; });
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(count(Outcome::kOk), 1);
}

TEST_F(SweepRunnerTest, IngestLeavesAnAllocationOpenThatMayLiveOn) {
  plan(1);
  const auto row = must(store_->create_allocation(sweep_, "ssh", dir_ / "spool"));
  launch::AllocationRequest request;
  request.id = row.id, request.spool = row.spool;
  std::filesystem::create_directories(row.spool);
  ASSERT_TRUE(launch::keep_record(request, "ssh", nlohmann::json::object()));
  Attempt under_way;
  under_way.trial = store_->plan(sweep_)->at(0).trial;
  under_way.trial_id = store_->plan(sweep_)->at(0).id;
  ASSERT_TRUE(store_->begin_attempt(sweep_, row.id, under_way));
  ASSERT_TRUE(recover(*store_, sweep_, observer_, {.leave = true}));
  EXPECT_EQ(store_->open_allocations(sweep_)->size(), 1u);
  EXPECT_EQ(store_->unfinished_attempts(row.id)->size(), 1u) << "it may run there right now";
  launch::drop_record(row.spool);
  ASSERT_TRUE(recover(*store_, sweep_, observer_, {.leave = true}));
  EXPECT_TRUE(store_->open_allocations(sweep_)->empty());
  EXPECT_TRUE(store_->unfinished_attempts(row.id)->empty());
}

}  // namespace
}  // namespace sweep::run
