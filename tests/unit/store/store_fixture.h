// A store in a folder of its own, with a sweep, a plan and helpers that make records.
#pragma once
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/expected.h"
#include "orchestrator/run/retry_policy.h"
#include "orchestrator/store/store.h"
#include "schema/codec.h"
#include "tests/support/error_matchers.h"

namespace sweep::store {

namespace fs = std::filesystem;

inline std::string message_of(const auto& answer) {
  return answer ? std::string("(no error)") : answer.error().message;
}

// Overwrites the first page of the table `result`, which opening the file does not read.
inline void damage(const fs::path& file) {
  sqlite3* db = nullptr;
  std::int64_t page = 0;
  const auto take = [](void* to, int, char** values, char**) {
    *static_cast<std::int64_t*>(to) = std::atoll(values[0]);
    return 0;
  };
  ::sqlite3_open(file.c_str(), &db);
  ::sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", nullptr, nullptr, nullptr);
  ::sqlite3_exec(db, "SELECT rootpage FROM sqlite_schema WHERE name = 'result'", take, &page, nullptr);
  ::sqlite3_close(db);
  ASSERT_GT(page, 1);
  constexpr std::int64_t kPage = 4096;
  std::fstream bytes(file, std::ios::binary | std::ios::in | std::ios::out);
  bytes.seekp((page - 1) * kPage);
  bytes << std::string(kPage, '\xff');
}

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    static std::atomic<int> serial{0};
    dir_ = fs::temp_directory_path() /
           ("sweep-store-" + std::to_string(::getpid()) + "-" + std::to_string(serial++));
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    path_ = dir_ / "t.db";
  }
  void TearDown() override {
    store_.reset();
    std::error_code ignored;
    fs::permissions(dir_, fs::perms::owner_all, ignored);
    fs::remove_all(dir_, ignored);
  }

  static StoreDependencies quick() {
    StoreDependencies dependencies;
    dependencies.busy_timeout_ms = 50;
    dependencies.decide_trial = run::decide_trial;
    return dependencies;
  }
  std::unique_ptr<Store> open(StoreDependencies dependencies = quick(), Mode mode = Mode::kReadWrite) {
    return must(Store::open(path_, mode, std::move(dependencies)));
  }
  // An open store with sweep `s`, `count` admitted trials and the lease.
  void start(int count, const std::string& options = "") {
    store_ = open();
    SweepRow row;
    row.name = "s", row.options = must(sweep_options_from(options));
    sweep_ = must(store_->ensure_sweep(row)).id;
    plan_ = make_plan(count);
    must(store_->sync_plan(sweep_, plan_, {}));
    ASSERT_FALSE(must(store_->take_lease(sweep_)).has_value());
    allocation_ = must(store_->create_allocation(sweep_, "local", dir_)).id;
  }

  static PlanEntry entry(i64 micro_batch_size, const std::string& model = "tiny", i64 nodes = 1) {
    PlanEntry out;
    out.trial.model = model;
    out.trial.spec.layers = 2, out.trial.spec.hidden_size = static_cast<i64>(model.size());
    out.trial.micro_batch_size = micro_batch_size, out.trial.nodes = nodes, out.trial.dp = 2;
    out.id = trial_id(out.trial);
    out.order = micro_batch_size;
    out.predicted = {1000 * micro_batch_size, 1.5, 2.0};
    return out;
  }
  static std::vector<PlanEntry> make_plan(int count) {
    std::vector<PlanEntry> out;
    for (int i = 0; i < count; ++i) out.push_back(entry(i + 1));
    return out;
  }

  Attempt begin(const PlanEntry& of) {
    Attempt wanted;
    wanted.trial_id = of.id, wanted.trial = of.trial;
    return must(store_->begin_attempt(sweep_, allocation_, wanted));
  }
  static Result verdict(const Attempt& attempt, Outcome outcome, std::optional<double> tokens_per_s = {}) {
    Result r;
    r.attempt = attempt.id, r.trial_id = attempt.trial_id, r.outcome = outcome;
    r.finished_unix_ns = 1'700'000'000'000'000'000;
    if (outcome != Outcome::kOk) r.reason = "because";
    r.metrics.tokens_per_s = tokens_per_s;
    r.metrics.startup_ms = tokens_per_s;  // one of which less is better
    return r;
  }
  static RankRecord record(const Attempt& attempt, i64 rank, int steps = 2) {
    RankRecord r;
    r.attempt = attempt.id, r.rank = rank, r.outcome = Outcome::kOk, r.phase = Phase::kDone;
    for (int i = 0; i < steps; ++i) {
      StepSample s;
      s.step = i, s.warmup = i == 0, s.step_ns = 100 + i, s.loss = 5.0 - i, s.tokens = 8;
      r.samples.push_back(s);
    }
    return r;
  }
  // Runs one attempt of a trial to a verdict through ingest.
  i64 finish(const PlanEntry& of, Outcome outcome, std::optional<double> tokens_per_s = {}) {
    const Attempt attempt = begin(of);
    IngestBatch batch;
    batch.allocation = allocation_;
    batch.new_offset = offset_ += 100;
    batch.started.emplace_back(attempt.id, 5);
    batch.rank_records = {record(attempt, 0), record(attempt, 1)};
    AttemptEnd end;
    end.attempt = attempt.id, end.cause = EndCause::kDone, end.ended_unix_ns = 9;
    batch.ends = {end};
    batch.results = {verdict(attempt, outcome, tokens_per_s)};
    must(store_->ingest(batch));
    return attempt.id;
  }
  // One column of the public view, in plan order of the trials.
  std::vector<Value> column(const std::string& name) {
    const Table table = must(store_->query("SELECT " + name + " FROM results ORDER BY micro_batch_size"));
    std::vector<Value> out;
    for (const auto& row : table.rows) out.push_back(row.front());
    return out;
  }
  // Statements on a connection of the test's own.
  void sql(const std::string& text) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(db, text.c_str(), nullptr, nullptr, &error), SQLITE_OK) << (error ? error : "");
    sqlite3_free(error);
    sqlite3_close(db);
  }

  fs::path dir_, path_;
  std::unique_ptr<Store> store_;
  i64 sweep_ = 0;
  std::string allocation_;
  std::uint64_t offset_ = 0;
  std::vector<PlanEntry> plan_;
};

}  // namespace sweep::store
