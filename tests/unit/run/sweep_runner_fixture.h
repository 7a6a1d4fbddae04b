// SweepRunnerTest: the run loop over a real store and a FakeLauncher, with what it asked for and said.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "orchestrator/run/retry_policy.h"
#include "orchestrator/run/run_sweep.h"
#include "schema/codec.h"
#include "tests/support/fake_launcher.h"
#include "tests/support/must.h"
#include "tests/support/temporary_folder.h"

namespace sweep::run {

using testing::FakeLauncher;
using testing::FakeOutcome;

class Silent : public Observer {
 public:
  void on_note(const std::string& sentence) override { notes.push_back(sentence); }
  void on_result(const PlanEntry&, const Result& result) override { results.push_back(result); }
  void on_snapshot(const Snapshot&) override { ++snapshots; }
  std::vector<std::string> notes;
  std::vector<Result> results;
  int snapshots = 0;
};

class SweepRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto store = open_store(dir_ / "r.db", store::Mode::kReadWrite);
    ASSERT_TRUE(store) << store.error().message;
    store_ = std::move(*store);
    store::SweepRow row;
    row.name = "test";
    row.options.retries_crash = 1, row.options.retries_infra = 3;
    const auto sweep = must(store_->ensure_sweep(row));
    sweep_ = sweep.id;
    const auto holder = store_->take_lease(sweep_);
    ASSERT_TRUE(holder && !*holder);
  }
  void TearDown() override { store_.reset(); }

  std::vector<std::string> events(EventKind kind) {
    const auto table =
        store_->query(fmt::format("SELECT text FROM event WHERE kind = '{}' ORDER BY id", to_string(kind)));
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

  Expected<RunEnd> run_by_shape(FakeLauncher::Script script, Bounds bounds) {
    settings_.allocate_per_shape = true;
    settings_.bounds = bounds;
    settings_.launcher = "fake";
    return run_with(std::move(script));
  }

  Expected<RunEnd> run_with(FakeLauncher::Script script, std::size_t chunk = 0) {
    Settings s = settings_;
    s.sweep = sweep_;
    s.spool_root = dir_ / "spool";
    s.measure.warmup_steps = 1;
    s.measure.steps = 2;
    return run_sweep(
        *store_, s,
        [&](boost::asio::io_context& io, launch::Launcher::Sink sink) {
          auto made = std::make_unique<FakeLauncher>(io, std::move(sink), std::move(script), chunk);
          made->requests_seen = &requests_, made->where_seen = &where_, made->told_seen = &told_;
          made->adoptable = adoptable_, made->seconds_left = seconds_left_;
          made->never_ends = never_ends_;
          made->waits_for_attempts = waits_for_attempts_, made->when_told = when_told_;
          made->stays_queued = stays_queued_;
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

  const TemporaryFolder dir_;
  std::unique_ptr<store::Store> store_;
  i64 sweep_ = 0;
  Silent observer_;
  Settings settings_;
  std::map<launch::AllocationId, launch::AllocationRequest> adoptable_;
  testing::NamedHosts named_;
  bool never_ends_ = false;
  bool waits_for_attempts_ = false;  // FakeLauncher's setting
  std::function<void()> when_told_;
  std::function<bool(const launch::AllocationRequest&)> stays_queued_;
  std::optional<double> seconds_left_;                 // time left of an allocation when it starts
  std::vector<launch::AllocationRequest> requests_;    // requests of the last run
  std::vector<std::string> told_;                      // allocations that were told to end in the last run
  std::map<std::string, launch::AllocationId> where_;  // trial -> allocation, of the last run
};

}  // namespace sweep::run
