// The parts of the run loop by themselves: a real store, a launcher that plays nothing, no event loop.
#include <algorithm>

#include "orchestrator/run/allocations.h"
#include "orchestrator/run/live_status.h"
#include "orchestrator/run/losses.h"
#include "orchestrator/run/outbox_reader.h"
#include "schema/spool.h"
#include "tests/support/must.h"
#include "tests/unit/run/sweep_runner_fixture.h"

namespace sweep::run {
namespace {

class PartsTest : public SweepRunnerTest {
 protected:
  void SetUp() override {
    SweepRunnerTest::SetUp();
    settings_.sweep = sweep_;
    settings_.spool_root = dir_ / "spool";
    settings_.launcher = "fake";
    settings_.allocate_per_shape = true;
    settings_.judge_node = [](const NodeRecord& node, const std::string&, i64) {
      return node.facts.cpu == "wrong" ? std::optional<std::string>("another GPU") : std::nullopt;
    };
    launcher_.emplace(
        io_, [](const launch::Event&) {}, [](const Attempt&) { return FakeOutcome::kHold; });
    launcher_->requests_seen = &requests_;
    launcher_->told_seen = &told_;
    context_.emplace(RunContext{*store_, settings_, observer_, *launcher_});
    allocations_.emplace(*context_);
    losses_.emplace(*context_);
    dispatch_.emplace(*context_, *allocations_, losses_->hosts());
  }
  HeldAllocation& request(i64 nodes = 1) {
    Wanted wanted;
    wanted.hardware = "cpu", wanted.nodes = nodes, wanted.seconds = 600;
    EXPECT_TRUE(allocations_->request(wanted, {"avoided"}));
    return *allocations_->find(requests_.back().id);
  }
  // An attempt of the first trial of the plan, in that allocation.
  Attempt posted(HeldAllocation& held) {
    Attempt wanted;
    const auto entry = store_->plan(sweep_)->at(0);
    wanted.trial_id = entry.id, wanted.trial = entry.trial;
    const auto attempt = store_->begin_attempt(sweep_, held.request.id, wanted);
    EXPECT_TRUE(attempt) << attempt.error().message;
    held.attempts.add(*attempt, entry);
    return *attempt;
  }
  OutboxReader::Effects process(HeldAllocation& held, std::string_view kind, nlohmann::json body,
                                bool run_ends = false) {
    const auto bytes = spool::frame({held.request.id, 1, ++lines_, std::string(kind), std::move(body)});
    OutboxReader reader(*context_, *dispatch_, losses_->hosts());
    const auto effects = reader.process(held, {held.request.id, offset_, bytes}, run_ends);
    EXPECT_TRUE(effects) << effects.error().message;
    offset_ += bytes.size();
    return *effects;
  }
  static nlohmann::json end_of(const Attempt& attempt, EndCause cause, bool clean = true) {
    AttemptEnd end;
    end.attempt = attempt.id, end.cause = cause, end.clean = clean;
    return to_json(end);
  }

  boost::asio::io_context io_;
  std::optional<FakeLauncher> launcher_;
  std::optional<RunContext> context_;
  std::optional<Allocations> allocations_;
  std::optional<Losses> losses_;
  std::optional<Dispatch> dispatch_;
  i64 lines_ = 0;
  std::uint64_t offset_ = 0;
};

TEST_F(PartsTest, AnAllocationIsRequestedStartedAndTakenOut) {
  HeldAllocation& held = request(2);
  EXPECT_EQ(requests_[0].avoid, std::vector<std::string>{"avoided"});
  EXPECT_EQ(held.state, AllocationState::kRequested);
  EXPECT_EQ(std::tuple(allocations_->nodes(), allocations_->at_work()), std::tuple(2, 0));
  const auto id = held.request.id;
  ASSERT_TRUE(allocations_->start(held, {id, "there", 1, 600.0, 60, {"a", "b"}}));
  EXPECT_EQ(held.state, AllocationState::kChecking);
  EXPECT_EQ(held.hosts, (Hosts{{0, "a"}, {1, "b"}}));
  EXPECT_EQ(allocations_->at_work(), 1);
  EXPECT_GE(allocations_->gpu_seconds(), 120) << "it was held for a minute before";
  allocations_->finish(held, false);
  EXPECT_EQ(held.state, AllocationState::kFinishing);
  EXPECT_EQ(told_, std::vector<std::string>{"finish"});
  const HeldAllocation taken = allocations_->take(id);
  EXPECT_TRUE(allocations_->empty());
  EXPECT_GE(allocations_->gpu_seconds(), 120) << "what it held still counts";
  ASSERT_TRUE(allocations_->close(taken, "finished"));
  EXPECT_TRUE(store_->open_allocations(sweep_)->empty());
}

TEST_F(PartsTest, ANodeOfAnotherHardwareEndsTheRun) {
  plan(1);
  HeldAllocation& held = request();
  EXPECT_FALSE(process(held, spool::kNode, to_json(NodeRecord{1, "b", {}})).wrong_node);
  EXPECT_EQ(held.state, AllocationState::kRequested) << "the head's record comes last";
  EXPECT_FALSE(process(held, spool::kNode, to_json(NodeRecord{0, "a", {.cpu = "wrong"}}), true).wrong_node)
      << "the run ends already";
  EXPECT_EQ(held.state, AllocationState::kChecked);
  EXPECT_TRUE(process(held, spool::kNode, to_json(NodeRecord{0, "a", {.cpu = "wrong"}})).wrong_node);
  EXPECT_EQ(events(EventKind::kHardware).size(), 1u);
}

TEST_F(PartsTest, ACancelledAttemptEndsTheAllocationUnlessTheRunAskedForIt) {
  plan(2);
  HeldAllocation& held = request();
  auto effects = process(held, spool::kAttemptEnd, end_of(posted(held), EndCause::kCancelled), true);
  EXPECT_EQ(std::tuple(effects.finished, effects.results, effects.finish), std::tuple(true, false, false));
  effects = process(held, spool::kAttemptEnd, end_of(posted(held), EndCause::kCancelled));
  EXPECT_EQ(std::tuple(effects.finished, effects.results, effects.finish), std::tuple(true, false, true));
  EXPECT_EQ(held.state, AllocationState::kReturning);
}

TEST_F(PartsTest, AnUncleanNodeGetsNoMoreWork) {
  plan(1);
  HeldAllocation& held = request();
  held.hosts = {{0, "a"}};
  const auto effects = process(held, spool::kAttemptEnd, end_of(posted(held), EndCause::kRankFailed, false));
  EXPECT_TRUE(effects.finish);
  EXPECT_TRUE(effects.results);
  EXPECT_EQ(held.results, 1);
  EXPECT_EQ(losses_->hosts().quarantined(), std::vector<std::string>{"a"});
}

TEST_F(PartsTest, ANodeWhereAttemptsFailIsNotAskedForAgainAndTheOthersGoOn) {
  plan(1);
  HeldAllocation& held = request(2);
  held.hosts = {{0, "a"}, {1, "b"}};
  const auto effects = process(held, spool::kNodeOut, {{"node", 1}, {"why", "it fails"}, {"lost", false}});
  EXPECT_FALSE(effects.finish);
  EXPECT_EQ(losses_->hosts().quarantined(), std::vector<std::string>{"b"});
  EXPECT_EQ(held.width(), 1);
  EXPECT_EQ(events(EventKind::kQuarantine).size(), 1u);
}

TEST_F(PartsTest, AnAttemptThatItsUnfitNodeCancelledLeavesTheAllocationAtWork) {
  plan(1);
  HeldAllocation& held = request(2);
  held.hosts = {{0, "a"}, {1, "b"}};
  AttemptEnd end;
  end.attempt = posted(held).id, end.cause = EndCause::kAgentStopping, end.evidence.node = 1;
  process(held, spool::kNodeOut, {{"node", 1}, {"why", "no working folder"}, {"lost", false}});
  const auto effects = process(held, spool::kAttemptEnd, to_json(end));
  EXPECT_FALSE(effects.finish);
  EXPECT_NE(held.state, AllocationState::kReturning);
  EXPECT_EQ(store_->progress(sweep_)->pending, 1) << "it uses up no retry";
}

TEST_F(PartsTest, ALostNodeIsSaidAndItsAllocationEndsWhereEnoughWorkWaits) {
  plan(3);  // of 60 s each
  HeldAllocation& held = request(2);
  held.hosts = {{0, "a"}, {1, "b"}};
  const nlohmann::json lost = {{"node", 1}, {"why", "silent"}, {"lost", true}};
  EXPECT_TRUE(process(held, spool::kNodeOut, lost).finish);
  const auto said = events(EventKind::kNodeLost);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("node 1 (b)"), std::string::npos) << said[0];
  EXPECT_TRUE(losses_->hosts().quarantined().empty()) << "it may be back in a moment";
  EXPECT_FALSE(process(held, spool::kNodeOut, lost).finish) << "said once";
  EXPECT_EQ(events(EventKind::kNodeLost).size(), 1u);
}

TEST_F(PartsTest, AResultBetweenLossesKeepsTheRunGoing) {
  HeldAllocation& held = request();
  const auto lose = [&] {
    const auto broken = losses_->lost(held, {held.request.id, "the agent was killed", true}, 0);
    EXPECT_TRUE(broken);
    return broken->has_value();
  };
  EXPECT_FALSE(lose() || lose());
  losses_->reset();
  EXPECT_FALSE(lose() || lose());
  EXPECT_TRUE(lose());
  EXPECT_EQ(events(EventKind::kAllocationLost).size(), 5u);
}

TEST_F(PartsTest, AHostThatItsLauncherNamesIsExcluded) {
  HeldAllocation& held = request();
  for (int i = 0; i < 5; ++i) {
    const auto broken = must(losses_->lost(held, {held.request.id, "refused", true, false, "a"}, 0));
    EXPECT_FALSE(broken);
  }
  EXPECT_EQ(losses_->hosts().quarantined(), std::vector<std::string>{"a"});
}

TEST_F(PartsTest, WhatAnAllocationLeftUnfinishedIsPendingAgain) {
  plan(1);
  HeldAllocation& held = request();
  const Attempt attempt = posted(held);
  OutboxReader reader(*context_, *dispatch_, losses_->hosts());
  ASSERT_TRUE(reader.close_unfinished(held, {held.request.id, "gone", true}, false));
  EXPECT_EQ(held.attempts.size(), 0u);
  EXPECT_EQ(store_->result_of(attempt.id)->value().outcome, Outcome::kCancelled) << "its ranks never started";
  EXPECT_EQ(store_->progress(sweep_)->pending, 1);
}

TEST(NextLook, ComesAfterTenTimesWhatOneTookWithinBounds) {
  using std::chrono::milliseconds;
  EXPECT_EQ(next_look_after(milliseconds(0)), milliseconds(400));
  EXPECT_EQ(next_look_after(milliseconds(100)), milliseconds(1'000));
  EXPECT_EQ(next_look_after(milliseconds(60'000)), milliseconds(30'000));
}

}  // namespace
}  // namespace sweep::run
