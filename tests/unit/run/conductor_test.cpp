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

  void plan(int trials) {
    std::vector<PlanEntry> entries;
    for (int i = 0; i < trials; ++i) {
      PlanEntry e;
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

  Expected<RunEnd> conduct_with(FakeLauncher::Script script, std::size_t chunk = 0) {
    Settings s;
    s.sweep = sweep_;
    s.spool_root = dir_ / "spool";
    s.measure.warmup_steps = 1;
    s.measure.steps = 2;
    return conduct(
        *store_, s,
        [&](boost::asio::io_context& io, launch::Launcher::Sink sink) {
          auto made = std::make_unique<FakeLauncher>(io, std::move(sink), std::move(script), chunk);
          fake_ = made.get();
          made_ = &made->allocations;
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
  FakeLauncher* fake_ = nullptr;
  int* made_ = nullptr;
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

}  // namespace
}  // namespace sweep::run
