// Joining databases: by name and id, once, over the union, all or nothing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "orchestrator/store/db.h"
#include "orchestrator/store/upgrade.h"
#include "tests/unit/store/store_fixture.h"

namespace sweep::store {
namespace {

using ::testing::HasSubstr;

class Merge : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    into_ = dir_ / "into.db";
  }
  // A database of its own with sweep `name` of `count` trials, those listed run to an end at `clock_`.
  struct Run {
    int trial;
    Outcome outcome;
    double tokens;
  };
  fs::path database(const std::string& file, int count, const std::vector<Run>& runs,
                    const std::string& name = "s") {
    path_ = dir_ / file;
    StoreDependencies dependencies = quick();
    dependencies.now_unix_ns = [this] { return clock_ += 10; };
    store_ = open(dependencies);
    SweepRow row;
    row.name = name;
    sweep_ = must(store_->ensure_sweep(row)).id;
    plan_ = make_plan(count);
    must(store_->sync_plan(sweep_, plan_, {}));
    EXPECT_FALSE(must(store_->take_lease(sweep_)).has_value());
    allocation_ = must(store_->create_allocation(sweep_, "local", dir_)).id;
    offset_ = 0;
    std::optional<i64> last;
    for (const auto& run : runs)
      last = finish(plan_[static_cast<std::size_t>(run.trial)], run.outcome, run.tokens);
    must(store_->add_event(sweep_, EventKind::kAgent, "a word from " + file, last));
    must(store_->end_allocation(allocation_, "done"));
    must(store_->release_lease(sweep_));
    store_.reset();
    return path_;
  }
  Expected<std::vector<MergeCounts>> try_merge(const std::vector<fs::path>& from) {
    path_ = into_;
    store_ = open();
    auto out = store_->merge(from);
    return out;
  }
  MergeCounts merge(const fs::path& from) { return must(try_merge({from})).front(); }
  std::string answers(const std::string& sql =
                          "SELECT sweep, trial, outcome, tokens_per_s, attempts, reason FROM results "
                          "ORDER BY 1, 2") {
    std::string out;
    for (const auto& row : must(store_->query(sql)).rows) {
      for (const auto& value : row)
        std::visit(
            [&](const auto& v) {
              if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::monostate>)
                out += "- ";
              else
                out += fmt::format("{} ", v);
            },
            value);
      out += "\n";
    }
    return out;
  }
  std::vector<std::string> everything() {
    std::vector<std::string> out;
    for (const char* table : {"sweep", "trial", "plan_entry", "allocation", "environment", "attempt",
                              "rank_record", "step_sample", "result", "event"})
      out.push_back(answers(fmt::format("SELECT * FROM {} ORDER BY 1, 2, 3, 4", table)));
    return out;
  }
  static std::string bytes(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
  i64 count(const std::string& table) {
    return std::get<i64>(must(store_->query("SELECT count(*) FROM " + table)).rows[0][0]);
  }

  fs::path into_;
  i64 clock_ = 1'700'000'000'000'000'000;
};

TEST_F(Merge, BringsSweepsTrialsResultsSamplesAndEvents) {
  const auto a = database("a.db", 3, {{0, Outcome::kOk, 10}, {1, Outcome::kOom, 0}});
  const auto b = database("b.db", 3, {{0, Outcome::kOk, 99}}, "other");
  const auto counts = must(try_merge({a, b}));
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(std::tuple(counts[0].sweeps, counts[0].trials, counts[0].attempts, counts[0].known),
            std::tuple(1, 3, 2, 0));
  EXPECT_EQ(std::tuple(counts[1].sweeps, counts[1].trials, counts[1].attempts, counts[1].known),
            std::tuple(1, 3, 1, 0));
  EXPECT_EQ(count("trial"), 3) << "a configuration is one, whoever measured it";
  EXPECT_EQ(count("rank_record"), 6);
  EXPECT_EQ(count("step_sample"), 12);
  EXPECT_EQ(count("event WHERE kind = 'agent'"), 2);
  EXPECT_EQ(count("event e JOIN attempt a ON a.id = e.attempt JOIN plan_entry p ON p.key = a.entry "
                  "WHERE e.kind = 'agent' AND p.sweep = e.sweep"),
            2)
      << "an event goes with its attempt, whatever number that has here";
  EXPECT_EQ(count("event WHERE kind = 'merged'"), 2);
  const i64 sweep = must(store_->find_sweep("s")).id;
  EXPECT_EQ(must(store_->progress(sweep)).pending, 1) << "trials without a result stay pending";
  const auto best = must(store_->best(sweep, "tokens_per_s", 1));
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best[0].trial_id, plan_[0].id);
  EXPECT_EQ(best[0].metrics.tokens_per_s, 10);
}

TEST_F(Merge, TheSameFileAgainChangesNothing) {
  const auto a = database("a.db", 3, {{0, Outcome::kOk, 10}, {1, Outcome::kCrash, 0}, {1, Outcome::kOk, 5}});
  merge(a);
  const auto before = everything();
  const auto again = merge(a);
  EXPECT_EQ(everything(), before);
  EXPECT_EQ(std::tuple(again.sweeps, again.trials, again.attempts, again.replaced, again.events, again.known),
            std::tuple(0, 0, 0, 0, 0, 3));
}

TEST_F(Merge, AGrownFileBringsWhatIsNew) {
  const auto a = database("a.db", 3, {{0, Outcome::kOk, 10}});
  merge(a);
  database("a.db", 3, {{1, Outcome::kOk, 20}});
  const auto grown = merge(a);
  EXPECT_EQ(std::tuple(grown.trials, grown.attempts, grown.known), std::tuple(0, 1, 1));
}

TEST_F(Merge, TheFinalAttemptIsTheLastOneOverTheUnionInBothDirections) {
  const auto early = database("early.db", 2, {{0, Outcome::kOk, 10}, {1, Outcome::kOk, 7}});
  const auto late = database("late.db", 2, {{0, Outcome::kOk, 20}, {1, Outcome::kNodeLost, 0}});
  must(try_merge({early, late}));
  const auto one = answers();
  EXPECT_THAT(one, HasSubstr("ok 20"));
  EXPECT_THAT(one, HasSubstr("ok 7")) << "an infrastructure failure is no answer";
  into_ = dir_ / "other.db";
  must(try_merge({late, early}));
  EXPECT_EQ(answers(), one);
}

TEST_F(Merge, RetriesCountOverTheUnion) {
  const auto a = database("a.db", 1, {{0, Outcome::kCrash, 0}});
  const auto b = database("b.db", 1, {{0, Outcome::kCrash, 0}});
  merge(a);
  EXPECT_EQ(must(store_->progress(1)).pending, 1) << "one crash is tried again";
  merge(b);
  EXPECT_EQ(must(store_->progress(1)).pending, 0);
  EXPECT_THAT(answers(), HasSubstr("crash"));
}

TEST_F(Merge, AnUnfinishedAttemptIsMergedOnceItHasAnOutcome) {
  const auto a = database("a.db", 2, {{0, Outcome::kOk, 10}});
  path_ = a;
  store_ = open();
  ASSERT_FALSE(must(store_->take_lease(1)).has_value());
  allocation_ = must(store_->create_allocation(1, "local", dir_)).id;
  const Attempt open_one = begin(plan_[1]);
  must(store_->release_lease(1));
  store_.reset();
  const auto first = merge(a);
  EXPECT_EQ(std::tuple(first.attempts, first.unfinished), std::tuple(1, 1));
  EXPECT_TRUE(must(store_->open_allocations(1)).empty()) << "its agent cannot report to this database";
  path_ = a;
  store_ = open();
  must(store_->finish_attempt(verdict(open_one, Outcome::kNodeLost)));
  const auto second = merge(a);
  EXPECT_EQ(std::tuple(second.attempts, second.known, second.unfinished), std::tuple(1, 1, 0));
}

TEST_F(Merge, ALostVerdictGivesWayToRecords) {
  const auto a = database("a.db", 1, {{0, Outcome::kNodeLost, 0}});
  merge(a);
  path_ = a;
  sql("UPDATE result SET outcome = 0, reason = '', tokens_per_s = 42; UPDATE plan_entry SET outcome = 0, "
      "state = 3");
  const auto counts = merge(a);
  EXPECT_EQ(std::tuple(counts.attempts, counts.replaced, counts.known), std::tuple(0, 1, 0));
  EXPECT_THAT(answers(), HasSubstr("ok 42"));
  EXPECT_EQ(merge(a).replaced, 0);
}

TEST_F(Merge, TheOtherFileIsOnlyRead) {
  const auto a = database("a.db", 1, {{0, Outcome::kOk, 10}});
  sql("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE");
  const std::string before = bytes(a);
  fs::permissions(a, fs::perms::owner_read);
  EXPECT_EQ(merge(a).attempts, 1);
  EXPECT_EQ(bytes(a), before);
}

TEST_F(Merge, AnOlderFileIsUpgradedAsACopy) {
  const auto a = database("a.db", 1, {{0, Outcome::kOk, 10}});
  // A file of before an axis and a metric came to be.
  sql("DROP VIEW results; ALTER TABLE trial DROP COLUMN packing; ALTER TABLE result DROP COLUMN util_sd; "
      "PRAGMA "
      "journal_mode = DELETE");
  const std::string before = bytes(a);
  EXPECT_EQ(merge(a).attempts, 1);
  EXPECT_EQ(bytes(a), before);
  EXPECT_THAT(answers(), HasSubstr("ok 10"));
}

TEST_F(Merge, DimensionsThatAnOlderFileWritesOutAreTheOnesLeftOutHere) {
  const auto a = database("a.db", 1, {{0, Outcome::kOk, 10}});
  sql("UPDATE trial SET spec = json_set(spec, '$.kv_lora_rank', 0)");
  const auto b = database("b.db", 1, {{0, Outcome::kOk, 20}});
  EXPECT_EQ(merge(a).attempts, 1);
  EXPECT_EQ(merge(b).attempts, 1);
  EXPECT_EQ(count("trial"), 1);
  const auto c = database("c.db", 1, {{0, Outcome::kOk, 30}});
  sql("UPDATE trial SET spec = json_set(spec, '$.kv_lora_rank', 512)");
  EXPECT_THAT(error_in(try_merge({c})), IsError(ErrorKind::kConflict));
  path_ = c, sql("UPDATE trial SET spec = '{'");
  EXPECT_THAT(error_in(try_merge({c})), IsError(ErrorKind::kConflict));
}

TEST_F(Merge, WhatCannotBeJoinedIsRefusedWithTheWayOut) {
  const auto a = database("a.db", 1, {{0, Outcome::kOk, 10}});
  sql("PRAGMA user_version = 99");
  EXPECT_THAT(error_in(try_merge({a})), IsError(ErrorKind::kUnsupported));
  sql("SELECT 1");
  path_ = a, sql(fmt::format("PRAGMA user_version = {}", migrations().back().version));
  sql("ALTER TABLE trial ADD COLUMN quantum INTEGER");
  EXPECT_THAT(error_in(try_merge({a})), IsError(ErrorKind::kUnknownName, "quantum"));
  path_ = a, sql("ALTER TABLE trial DROP COLUMN quantum");
  EXPECT_THAT(error_in(try_merge({into_})), IsError(ErrorKind::kConflict, into_.string()));
  EXPECT_THAT(error_in(try_merge({dir_ / "none.db"})),
              IsError(ErrorKind::kNotFound, (dir_ / "none.db").string()));
  std::ofstream(dir_ / "text.db") << "not a database at all, but long enough to look at";
  EXPECT_THAT(error_in(try_merge({dir_ / "text.db"})), IsError(ErrorKind::kUnreadable));
  EXPECT_EQ(count("sweep"), 0) << "nothing of a refused merge is stored";
}

TEST_F(Merge, ARefusedFileTakesTheOthersWithIt) {
  const auto a = database("a.db", 1, {{0, Outcome::kOk, 10}});
  const auto b = database("b.db", 1, {{0, Outcome::kOk, 10}});
  sql("UPDATE trial SET nodes = 64");
  const auto refused = try_merge({a, b});
  EXPECT_THAT(error_in(refused), IsError(ErrorKind::kConflict));
  EXPECT_EQ(count("sweep"), 0);
}

TEST_F(Merge, ASweepThatRunsIsRefusedHereAndThere) {
  const auto a = database("a.db", 1, {{0, Outcome::kOk, 10}});
  path_ = a;
  auto running = open();
  ASSERT_FALSE(must(running->take_lease(1)).has_value());
  EXPECT_THAT(error_in(try_merge({a})), IsError(ErrorKind::kBusy, "s"));
  must(running->release_lease(1));
  running.reset();
  merge(a);
  const auto b = database("b.db", 1, {{0, Outcome::kOk, 11}});
  path_ = into_;
  auto runner = open();
  ASSERT_FALSE(must(runner->take_lease(1)).has_value());
  EXPECT_THAT(error_in(try_merge({b})), IsError(ErrorKind::kBusy, into_.string()));
}

TEST_F(Merge, HostileNamesAreNamesOnly) {
  const std::string name = "'; DROP TABLE sweep; -- \" \xF0\x9F\x99\x82 %s {}";
  const auto a = database("it's {} a \"file\".db", 1, {{0, Outcome::kOk, 10}}, name);
  EXPECT_EQ(merge(a).sweeps, 1);
  EXPECT_EQ(merge(a).sweeps, 0);
  EXPECT_EQ(must(store_->find_sweep(name)).name, name);
}

// At once until one came before the commit, then later and later until one came after it.
TEST_F(Merge, AKillLeavesAllOrNothing) {
  std::vector<Run> runs;
  for (int i = 0; i < 40; ++i) runs.push_back({i, Outcome::kOk, 1.0 + i});
  const auto a = database("a.db", 40, runs);
  bool nothing = false, all = false;
  for (int pause_us = 0; pause_us < 200'000'000 && !(nothing && all);
       pause_us = nothing ? pause_us * 3 / 2 + 1'000 : 0) {
    for (const char* tail : {"", "-wal", "-shm"}) fs::remove(into_.string() + tail);
    path_ = into_;
    open();
    const pid_t child = ::fork();
    if (child == 0) {
      auto merged = Store::open(into_, Mode::kReadWrite, quick());
      if (merged) (*merged)->merge(std::vector{a});
      ::pause();
    }
    ::usleep(static_cast<useconds_t>(pause_us));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    store_ = open();
    const i64 results = count("result");
    EXPECT_TRUE(results == 0 || results == 40) << results;
    EXPECT_EQ(count("attempt"), results);
    EXPECT_EQ(count("step_sample"), results * 4);
    (results == 0 ? nothing : all) = true;
    store_.reset();
  }
  EXPECT_TRUE(nothing && all) << "kills came before and after the commit";
  const auto again = merge(a);
  EXPECT_EQ(again.attempts + again.known, 40);
}

TEST_F(Merge, ADamagedFileIsNamedItself) {
  const fs::path from = database("from.db", 2, {{0, Outcome::kOk, 10}});
  damage(from);
  EXPECT_THAT(error_in(try_merge({from})), IsError(ErrorKind::kUnreadable, from.string()));
}

}  // namespace
}  // namespace sweep::store
