#include "orchestrator/run/conductor.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "schema/codec.h"
#include "tests/support/fake_launcher.h"

namespace sweep::run {
namespace {

using testing::FakeLauncher;
using testing::Fate;

class Silent : public Observer {
 public:
  void on_note(const std::string& sentence) override { notes.push_back(sentence); }
  void on_result(const PlanEntry&, const Result& result) override { results.push_back(result); }
  void on_snapshot(const Snapshot&) override { ++snapshots; }
  std::vector<std::string> notes;
  std::vector<Result> results;
  int snapshots = 0;
};

class ConductorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "conductor_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
    auto store = store::Store::open(dir_ / "r.db", store::Mode::kReadWrite);
    ASSERT_TRUE(store) << store.error().message;
    store_ = std::move(*store);
    store::SweepRow row;
    row.name = "test";
    row.options_json = R"({"retries_crash":1,"retries_infra":3})";
    const auto sweep = store_->ensure_sweep(row);
    ASSERT_TRUE(sweep) << sweep.error().message;
    sweep_ = sweep->id;
    const auto holder = store_->take_lease(sweep_);
    ASSERT_TRUE(holder && !*holder);
  }
  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(dir_);
  }

  std::vector<std::string> events(const std::string& kind) {
    const auto table = store_->query("SELECT text FROM event WHERE kind = '" + kind + "' ORDER BY id");
    EXPECT_TRUE(table);
    std::vector<std::string> out;
    for (const auto& row : table->rows) out.push_back(std::get<std::string>(row[0]));
    return out;
  }
  i64 asked_for(const std::string& host) const {
    return std::count_if(named_.asked.begin(), named_.asked.end(),
                         [&](const auto& hosts) { return std::count(hosts.begin(), hosts.end(), host) > 0; });
  }

  void plan(int trials, const std::vector<i64>& nodes = {}, const std::vector<std::string>& hardware = {}) {
    std::vector<PlanEntry> entries;
    for (int i = 0; i < trials; ++i) {
      PlanEntry e;
      if (!nodes.empty()) e.trial.nodes = e.trial.dp = nodes[static_cast<std::size_t>(i)];
      if (!hardware.empty()) e.trial.hardware = hardware[static_cast<std::size_t>(i)];
      e.predicted.seconds = 60;
      e.trial.model = "tiny";
      e.trial.spec.layers = 1;
      e.trial.seq_len = 64 + i;
      e.id = trial_id(e.trial);
      e.order = i;
      entries.push_back(e);
    }
    const auto counts = store_->sync_plan(sweep_, entries, MeasurePlan{});
    ASSERT_TRUE(counts) << counts.error().message;
  }

  Expected<RunEnd> conduct_by_need(FakeLauncher::Script script, Bounds bounds) {
    settings_.by_need = true;
    settings_.bounds = bounds;
    settings_.launcher = "fake";
    return conduct_with(std::move(script));
  }

  Expected<RunEnd> conduct_with(FakeLauncher::Script script, std::size_t chunk = 0) {
    Settings s = settings_;
    s.sweep = sweep_;
    s.spool_root = dir_ / "spool";
    s.measure.warmup_steps = 1;
    s.measure.steps = 2;
    return conduct(
        *store_, s,
        [&](boost::asio::io_context& io, launch::Launcher::Sink sink) {
          auto made = std::make_unique<FakeLauncher>(io, std::move(sink), std::move(script), chunk);
          made->requests_seen = &requests_, made->where_seen = &where_;
          made->adoptable = adoptable_;
          if (!named_.all.empty()) made->named = &named_;
          return made;
        },
        observer_);
  }

  i64 count(Outcome wanted) {
    const auto progress = store_->progress(sweep_);
    for (const auto& [outcome, n] : progress->by_outcome)
      if (outcome == wanted) return n;
    return 0;
  }

  std::filesystem::path dir_;
  std::unique_ptr<store::Store> store_;
  i64 sweep_ = 0;
  Silent observer_;
  Settings settings_;
  std::map<launch::AllocationId, launch::AllocationRequest> adoptable_;
  testing::NamedHosts named_;
  std::vector<launch::AllocationRequest> requests_;    // of the last run
  std::map<std::string, launch::AllocationId> where_;  // trial -> allocation, of the last run
};

TEST_F(ConductorTest, RunsEveryTrialOnceAndIsDone) {
  plan(7);
  const auto end = conduct_with([](const Attempt&) { return Fate::kOk; });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone);
  EXPECT_EQ(count(Outcome::kOk), 7);
  EXPECT_EQ(observer_.results.size(), 7u);
  EXPECT_EQ(exit_code_for(*store_->progress(sweep_)), 0);
  EXPECT_NEAR(*observer_.results[0].metrics.step_ms, 1.0, 1e-9);
}

TEST_F(ConductorTest, TornOutboxPiecesCountEachRecordOnce) {
  plan(3);
  for (const std::size_t chunk : {1u, 7u, 100u}) {
    const auto end = conduct_with([](const Attempt&) { return Fate::kOk; }, chunk);
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(count(Outcome::kOk), 3);
  }
  EXPECT_EQ(observer_.results.size(), 3u);
}

TEST_F(ConductorTest, AnOomIsAnAnswerAndACrashIsTriedOnceMore) {
  plan(2);
  std::map<std::string, int> tries;
  const auto end = conduct_with([&](const Attempt& a) {
    ++tries[a.trial_id];
    return a.trial.seq_len == 64 ? Fate::kOom : Fate::kCrash;
  });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(count(Outcome::kOom), 1);
  EXPECT_EQ(count(Outcome::kCrash), 1);
  for (const auto& [id, n] : tries) EXPECT_LE(n, 2);
  EXPECT_EQ(exit_code_for(*store_->progress(sweep_)), 1);
  EXPECT_FALSE(observer_.results[0].metrics.step_ms) << "a failed attempt has no speed";
}

TEST_F(ConductorTest, ALostAllocationIsReplacedAndItsTrialsRunAgain) {
  plan(4);
  bool lost = false;
  const auto end = conduct_with([&](const Attempt& a) {
    if (a.trial.seq_len == 66 && !lost) return lost = true, Fate::kLoseAllocation;
    return Fate::kOk;
  });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone);
  EXPECT_EQ(count(Outcome::kOk), 4);
}

TEST_F(ConductorTest, TheCircuitBreakerOpensWhenEveryAllocationIsLost) {
  plan(4);
  const auto end = conduct_with([](const Attempt&) { return Fate::kLoseAllocation; });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kBroken);
  EXPECT_NE(end->why.find("doctor"), std::string::npos);
  EXPECT_EQ(exit_code_for(*store_->progress(sweep_)), 1);
}

TEST_F(ConductorTest, TheCircuitBreakerStaysShutWhereMostAllocationsWork) {
  plan(16);
  std::set<i64> lost;
  Bounds bounds{8, 8, 120};
  bounds.most_nodes_each = 1;
  const auto end = conduct_by_need(
      [&](const Attempt& a) {
        const bool first =
            lost.size() < 6 && lost.insert(a.trial.seq_len).second;  // three of eight, two each
        return first ? Fate::kLoseAllocation : Fate::kOk;
      },
      bounds);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone) << end->why;
  EXPECT_EQ(count(Outcome::kOk), 16);
  EXPECT_EQ(events("allocation_lost").size(), 3u);
}

TEST_F(ConductorTest, AnInboxThatCannotBeWrittenEndsTheRunAndKeepsTheTrialsPending) {
  plan(3);
  const auto end =
      conduct_with([](const Attempt& a) { return a.trial.seq_len == 65 ? Fate::kRefusePost : Fate::kOk; });
  ASSERT_FALSE(end);
  EXPECT_NE(end.error().message.find("No space left"), std::string::npos);
  EXPECT_TRUE(store_->open_allocations(sweep_)->empty());
  const auto again = conduct_with([](const Attempt&) { return Fate::kOk; });
  ASSERT_TRUE(again);
  EXPECT_EQ(count(Outcome::kOk), 3);
}

TEST_F(ConductorTest, AStopRequestEndsTheRunningAttemptsAndLeavesTheRestPending) {
  plan(9);
  const auto end = conduct_with([&](const Attempt& a) {
    if (a.trial.seq_len < 66) return Fate::kOk;
    EXPECT_TRUE(store_->request_stop(sweep_, true));
    return Fate::kHold;
  });
  ASSERT_TRUE(end);
  EXPECT_EQ(end->end, End::kStopped);
  EXPECT_EQ(count(Outcome::kOk), 2);
  EXPECT_EQ(store_->progress(sweep_)->pending, 7);
}

TEST_F(ConductorTest, AllocationsFollowWhatTrialsNeed) {
  plan(6, {1, 1, 4, 1, 4, 1});
  const auto end = conduct_by_need([](const Attempt&) { return Fate::kOk; }, {4, 3, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone);
  EXPECT_EQ(count(Outcome::kOk), 6);
  ASSERT_EQ(requests_.size(), 1u) << "one allocation of the largest takes the small ones too";
  EXPECT_EQ(requests_[0].nodes, 4);
  EXPECT_EQ(requests_[0].slots, 1) << "a trial has its nodes to itself";
}

TEST_F(ConductorTest, SeveralAllocationsAtOnceAndEveryTrialInOneThatHoldsIt) {
  std::vector<i64> nodes(120, 1);
  nodes[3] = 2;
  plan(120, nodes);
  const auto end = conduct_by_need([](const Attempt&) { return Fate::kOk; }, {5, 3, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(count(Outcome::kOk), 120);
  ASSERT_GE(requests_.size(), 2u);
  i64 nodes_at_first = 0;
  for (std::size_t i = 0; i < 2; ++i) nodes_at_first += requests_[i].nodes;
  EXPECT_LE(nodes_at_first, 5);
  EXPECT_EQ(requests_[0].nodes, 2);
  EXPECT_EQ(requests_[1].nodes, 3) << "two hours of single-node work go side by side";
}

TEST_F(ConductorTest, NoAllocationTakesMoreThanItsPartOfWhatIsLeft) {
  plan(80);
  Bounds bounds{40, 40, {}};
  bounds.most_nodes_each = 1;
  bounds.time_s = 120;  // two trials' worth
  const auto end = conduct_by_need([](const Attempt&) { return Fate::kOk; }, bounds);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(count(Outcome::kOk), 80);
  std::map<launch::AllocationId, i64> taken;
  for (const auto& [trial, where] : where_) ++taken[where];
  EXPECT_EQ(taken.size(), 40u);
  for (const auto& [where, trials] : taken) EXPECT_EQ(trials, 2) << where;
}

TEST_F(ConductorTest, WhatMayNeverBeAskedForIsSaidAndStaysPending) {
  plan(2, {8, 8});
  const auto end = conduct_by_need([](const Attempt&) { return Fate::kOk; }, {4, 3, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kBroken);
  EXPECT_NE(end->why.find("max_nodes is 4"), std::string::npos) << end->why;
  EXPECT_EQ(store_->progress(sweep_)->pending, 2);
}

TEST_F(ConductorTest, APreemptedTrialBurnsNoRetry) {
  plan(1);
  int preempted = 0;
  const auto end = conduct_by_need(
      [&](const Attempt&) { return preempted++ < 2 ? Fate::kPreempt : Fate::kOk; }, {1, 1, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone);
  EXPECT_EQ(count(Outcome::kOk), 1);
  const auto table = store_->query("SELECT outcome FROM result ORDER BY attempt");
  ASSERT_TRUE(table);
  ASSERT_EQ(table->rows.size(), 3u);
  EXPECT_EQ(std::get<i64>(table->rows[0][0]), static_cast<i64>(Outcome::kCancelled));
}

TEST_F(ConductorTest, AnAllocationOfAKilledRunIsAdoptedWithWhatRanInIt) {
  plan(3);
  const auto row = store_->create_allocation(sweep_, "fake", dir_ / "spool");
  ASSERT_TRUE(row);
  std::filesystem::create_directories(row->spool);
  Attempt under_way;
  under_way.trial = store_->plan(sweep_)->at(0).trial;
  under_way.trial_id = store_->plan(sweep_)->at(0).id;
  under_way.measure.warmup_steps = 1, under_way.measure.steps = 2;
  ASSERT_TRUE(
      store_->begin_attempt(sweep_, row->id, under_way));  // committed, never posted: the crash came between
  adoptable_[row->id].seconds = 600;
  const auto end = conduct_by_need([](const Attempt&) { return Fate::kOk; }, {1, 1, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(count(Outcome::kOk), 3);
  EXPECT_TRUE(requests_.empty()) << "no second allocation is asked for";
  EXPECT_EQ(where_.size(), 3u);
}

TEST_F(ConductorTest, AnAllocationOfAnotherLauncherIsNotTouched) {
  plan(1);
  ASSERT_TRUE(store_->create_allocation(sweep_, "slurm", dir_ / "spool"));
  const auto end = conduct_with([](const Attempt&) { return Fate::kOk; });
  ASSERT_FALSE(end);
  EXPECT_NE(end.error().message.find("--on slurm"), std::string::npos) << end.error().message;
  EXPECT_EQ(store_->open_allocations(sweep_)->size(), 1u);
}

TEST_F(ConductorTest, ADeadHostIsAskedForTwiceAndWhatFitsTheOthersGoesOn) {
  named_ = {{{"a", "cpu"}, {"b", "cpu"}, {"c", "cpu"}}, {"b"}, {}};
  plan(8, {1, 2, 1, 3, 2, 1, 3, 1});
  settings_.rest_s = 0;
  const auto end = conduct_by_need([](const Attempt&) { return Fate::kOk; }, {3, 3, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kBroken);
  EXPECT_NE(end->why.find("2 of 3 cpu hosts, where 2 can be used. Out of this run: b"), std::string::npos)
      << end->why;
  EXPECT_EQ(count(Outcome::kOk), 6);
  EXPECT_EQ(store_->progress(sweep_)->pending, 2);
  EXPECT_EQ(asked_for("b"), 2);
  const auto out = events("quarantine");
  ASSERT_EQ(out.size(), 1u);
  EXPECT_NE(out[0].find("node b gets no more work"), std::string::npos) << out[0];
  EXPECT_NE(out[0].find("b: refused"), std::string::npos) << out[0];
  EXPECT_EQ(events("pending").size(), 1u) << "said once";
}

TEST_F(ConductorTest, AHostThatFailedRestsWhileOthersWork) {
  named_ = {{{"a", "cpu"}, {"b", "cpu"}}, {"a"}, {}};
  plan(2);
  settings_.rest_s = 1000;
  const auto end = conduct_by_need([](const Attempt&) { return Fate::kOk; }, {2, 1, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone) << "nobody waits for it";
  EXPECT_EQ(named_.asked, (std::vector<std::vector<std::string>>{{"a"}, {"b"}}));
}

TEST_F(ConductorTest, WithNothingElseToDoTheRestOfAHostIsWaitedFor) {
  named_ = {{{"a", "cpu"}, {"b", "cpu"}}, {"a"}, {}};
  plan(1, {2});
  settings_.rest_s = 0.1;
  const auto end = conduct_by_need([](const Attempt&) { return Fate::kOk; }, {2, 2, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kBroken);
  EXPECT_EQ(asked_for("a"), 2);
}

TEST_F(ConductorTest, DeadHostsOneAfterAnotherOpenNoCircuitBreaker) {
  named_ = {{{"a", "cpu"}, {"b", "cpu"}, {"c", "cpu"}, {"d", "cpu"}}, {"a", "b", "c"}, {}};
  plan(3);
  settings_.rest_s = 0;
  const auto end = conduct_by_need([](const Attempt&) { return Fate::kOk; }, {4, 1, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kDone) << end->why;
  EXPECT_EQ(count(Outcome::kOk), 3);
  EXPECT_EQ(asked_for("a") + asked_for("b") + asked_for("c"), 6);
}

TEST_F(ConductorTest, WithNoHostLeftTheTrialsArePendingAndThatIsSaid) {
  named_ = {{{"a", "cpu"}, {"b", "cpu"}}, {"a", "b"}, {}};
  plan(2);
  settings_.rest_s = 0;
  const auto end = conduct_by_need([](const Attempt&) { return Fate::kOk; }, {2, 2, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kBroken);
  EXPECT_NE(end->why.find("where 0 can be used. Out of this run: a, b"), std::string::npos) << end->why;
  EXPECT_EQ(store_->progress(sweep_)->pending, 2);
}

TEST_F(ConductorTest, HostsOfAnotherHardwareAreNoneForATrial) {
  named_ = {{{"a", "cpu"}, {"b", "cpu"}, {"g", "h100-sxm-80gb"}}, {}, {}};
  const std::string gpu = "h100-sxm-80gb";
  plan(5, {1, 2, 1, 2, 1}, {"cpu", "cpu", gpu, gpu, "cpu"});
  const auto end = conduct_by_need([](const Attempt&) { return Fate::kOk; }, {3, 3, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->end, End::kBroken);
  EXPECT_NE(end->why.find("1 of 2 h100-sxm-80gb hosts, where 1 can be used. Name more"), std::string::npos)
      << end->why;
  EXPECT_EQ(count(Outcome::kOk), 4);
}

TEST_F(ConductorTest, AHostIsAvoidedByTheNameItWasGivenBy) {
  named_ = {{{"a", "cpu"}, {"b", "cpu"}}, {}, {}};
  plan(2);
  bool dirty = false;
  const auto end = conduct_by_need(
      [&](const Attempt&) { return std::exchange(dirty, true) ? Fate::kOk : Fate::kDirty; }, {1, 1, {}});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(count(Outcome::kOk), 2);
  ASSERT_GE(requests_.size(), 2u);
  EXPECT_EQ(requests_.back().avoid, std::vector<std::string>{"a"}) << "its agent calls it box";
}

}  // namespace
}  // namespace sweep::run
