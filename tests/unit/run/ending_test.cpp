// Allocations that the run loop ends itself: stops that grow stronger, and requests that nobody needs any more.
#include <csignal>

#include "tests/support/must.h"
#include "tests/unit/run/sweep_runner_fixture.h"

namespace sweep::run {
namespace {

using EndingTest = SweepRunnerTest;

// The first one lets the attempts finish, which may take hours.
TEST_F(EndingTest, AStrongerStopRaisesTheOneThatGoesOn) {
  plan(4);
  waits_for_attempts_ = true;
  std::size_t told = 0;
  when_told_ = [&] {
    if (++told == 1) {
      EXPECT_TRUE(store_->request_stop(sweep_, true));
    }
  };
  const auto end = run_with([&](const Attempt&) {
    EXPECT_TRUE(store_->request_stop(sweep_, false));
    return FakeOutcome::kHold;
  });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kStopped);
  EXPECT_EQ(told_, (std::vector<std::string>{"finish", "finish now"}));
}

TEST_F(EndingTest, AStopAtOnceIsHeardAfterTheLimitOfGpuHours) {
  plan(4);
  waits_for_attempts_ = true;
  settings_.gpu_hours = 1e-9, settings_.launcher = "fake";
  when_told_ = [&] { EXPECT_TRUE(store_->request_stop(sweep_, true)); };
  const auto left = store_->create_allocation(sweep_, "fake", dir_ / "spool");
  ASSERT_TRUE(left && store_->allocation_started(left->id, "there", 1, {1, 1, 60}));
  adoptable_[left->id] = {};
  const auto end = run_with([&](const Attempt&) { return FakeOutcome::kHold; });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_NE(end->why.find("GPU-hours"), std::string::npos) << "the first reason is kept: " << end->why;
  EXPECT_EQ(told_, (std::vector<std::string>{"finish", "finish now"}));
}

TEST_F(EndingTest, AStopThatComesWithTheLastAnswerIsTheEndOfAWholeSweep) {
  plan(1);
  when_told_ = [] {};
  const auto end = run_with([&](const Attempt&) {
    EXPECT_TRUE(store_->request_stop(sweep_, false));
    return FakeOutcome::kOk;
  });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone) << end->why;
}

// After an error nothing is stored any more, and an allocation may never say that it ended.
TEST_F(EndingTest, AThirdSignalAfterAnErrorEndsTheRun) {
  plan(1);
  never_ends_ = true;
  when_told_ = [] { ::raise(SIGINT); };
  const auto end = run_with([](const Attempt&) { return FakeOutcome::kRefusePost; });
  EXPECT_FALSE(end);
  EXPECT_EQ(told_, (std::vector<std::string>{"finish now", "finish now", "kill"}));
}

// Slurm calls a job cancelled that this run withdraws while it waits in the queue.
TEST_F(EndingTest, AnAllocationThatIsGivenBackIsNotLost) {
  plan(4);
  Bounds bounds{2, 2, 120};
  bounds.most_nodes_each = 1;
  stays_queued_ = [&](const launch::AllocationRequest&) { return requests_.size() == 2; };
  when_told_ = [&] { EXPECT_TRUE(store_->request_stop(sweep_, true)); };
  const auto end = run_by_shape(
      [](const Attempt& a) { return a.trial.seq_len < 67 ? FakeOutcome::kOk : FakeOutcome::kHold; }, bounds);
  ASSERT_TRUE(end) << end.error().message;
  ASSERT_EQ(requests_.size(), 2u);
  EXPECT_EQ(count(Outcome::kOk), 3);
  EXPECT_EQ(events(EventKind::kAllocationReleased).size(), 1u);
  EXPECT_TRUE(events(EventKind::kAllocationLost).empty()) << events(EventKind::kAllocationLost).front();
  const auto reasons =
      must(store_->query("SELECT end_reason FROM allocation WHERE id = '" + requests_[1].id + "'"));
  EXPECT_EQ(std::get<std::string>(reasons.rows.at(0).at(0)), "given back before it started");
}

}  // namespace
}  // namespace sweep::run
