// best, query and the public view.
#include <gmock/gmock.h>

#include "orchestrator/store/built_in_queries.h"
#include "schema/ranking.h"
#include "store_fixture.h"

namespace sweep::store {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Text = std::string;

class AnswersTest : public StoreTest {
 protected:
  void add(const PlanEntry& one) {
    plan_.push_back(one);
    must(store_->sync_plan(sweep_, plan_, {}));
  }
  std::vector<std::string> best(const std::string& metric = "tokens_per_s", i64 limit = 1) {
    std::vector<std::string> out;
    for (const auto& row : must(store_->best(sweep_, metric, limit))) out.push_back(row.trial_id);
    return out;
  }
};

TEST_F(AnswersTest, TheBestAreThoseOfARankingOfAllRows) {
  start(0);
  for (i64 i = 1; i <= 12; ++i) add(entry(i, i % 2 ? "a" : "bb", 1 + i % 3));
  for (std::size_t i = 0; i < plan_.size(); ++i) finish(plan_[i], Outcome::kOk, double((i * 7) % 12));
  auto rows = must(store_->results(sweep_));
  for (const char* metric : {"tokens_per_s", "startup_ms"}) {
    const Column& column = *find_column(metric);
    std::ranges::sort(rows, [&](const ResultRow& a, const ResultRow& b) {
      return ranks_before(column.better, std::get<double>(column.get(a)), a.trial_id,
                          std::get<double>(column.get(b)), b.trial_id);
    });
    for (const std::size_t limit : {std::size_t{1}, std::size_t{2}, std::size_t{5}, std::size_t{100}}) {
      std::vector<std::string> expected;
      for (std::size_t i = 0; i < std::min(limit, rows.size()); ++i) expected.push_back(rows[i].trial_id);
      EXPECT_EQ(best(metric, static_cast<i64>(limit)), expected);
    }
  }
}

TEST_F(AnswersTest, OnlyOkTrialsWithTheMetricAreRanked) {
  start(4);
  finish(plan_[0], Outcome::kOk, 5);
  finish(plan_[1], Outcome::kInvalid, 50);
  finish(plan_[2], Outcome::kOk);
  finish(plan_[3], Outcome::kOk, 4);
  EXPECT_EQ(best("tokens_per_s", 10), (std::vector<std::string>{plan_[0].id, plan_[3].id}));
}

TEST_F(AnswersTest, TheBuiltInBestLeavesOutTrialsThatWereStoppedEarly) {
  start(4);
  for (const PlanEntry& each : plan_) finish(each, Outcome::kOk, 1);
  const char* const figures[] = {
      "tokens_per_s_gpu = 900, steps_saved = 3",
      "tokens_per_s_gpu = 800, useful_fraction = 0.5",
      "tokens_per_s_gpu = 500",
      "useful_tokens_per_s_gpu = 600",
  };
  for (std::size_t i = 0; i < plan_.size(); ++i)
    sql(std::string("UPDATE result SET ") + figures[i] +
        " WHERE attempt = " + std::to_string(must(store_->final_attempt(sweep_, plan_[i].id)).value()));
  const auto query = std::ranges::find(built_in_queries(), std::string_view("best"), &BuiltInQuery::name);
  ASSERT_NE(query, built_in_queries().end());
  const Table found = must(store_->query(query->sql));
  ASSERT_EQ(found.rows.size(), 1u);
  EXPECT_EQ(found.rows[0].back(), Value(plan_[3].id));
  sql("UPDATE result SET useful_tokens_per_s_gpu = NULL, tokens_per_s_gpu = NULL");
  EXPECT_TRUE(must(store_->query(query->sql)).rows.empty()) << "no rate, no fastest";
}

TEST_F(AnswersTest, TheUsualMetricIsThatOfTheSweepsResults) {
  start(2);
  EXPECT_EQ(must(store_->usual_metric(sweep_)), "tokens_per_s_gpu");
  finish(plan_[0], Outcome::kOk, 5);
  sql("UPDATE result SET tokens_per_s_gpu = 5, useful_fraction = 0.5, useful_tokens_per_s_gpu = 2.5");
  EXPECT_EQ(must(store_->usual_metric(sweep_)), "useful_tokens_per_s_gpu");
}

TEST_F(AnswersTest, TheFinalAttemptIsTheOneBehindTheAnswer) {
  start(2);
  finish(plan_[0], Outcome::kNodeLost);
  const i64 second = finish(plan_[0], Outcome::kOk, 5);
  EXPECT_EQ(must(store_->final_attempt(sweep_, plan_[0].id)), second);
  EXPECT_EQ(must(store_->final_attempt(sweep_, plan_[1].id)), std::nullopt);
  EXPECT_EQ(must(store_->final_attempt(sweep_, "no such trial")), std::nullopt);
}

TEST_F(AnswersTest, AnswersFollowRetries) {
  start(1);
  finish(plan_[0], Outcome::kOk, 5);
  const Outcome which[] = {Outcome::kOk};
  must(store_->reopen(sweep_, which));
  finish(plan_[0], Outcome::kOom);
  EXPECT_TRUE(best().empty());
}

TEST_F(AnswersTest, AnUnknownMetricIsRefused) {
  start(1);
  EXPECT_THAT(error_in(store_->best(sweep_, "mfuu", 1)), IsError(ErrorKind::kUnknownName, "mfuu"));
  EXPECT_THAT(error_in(store_->best(sweep_, "1); DROP TABLE result; --", 1)),
              IsError(ErrorKind::kUnknownName));
  EXPECT_THAT(error_in(store_->best(sweep_, "peak_rank", 1)), IsError(ErrorKind::kUnknownName, "peak_rank"))
      << "no value of it is better";
}

TEST_F(AnswersTest, TheViewNamesEveryAxisAndMetric) {
  start(1);
  const Table table = must(store_->query("SELECT * FROM results"));
  Trial trial;
  for_each_axis(trial, [&](const FieldInfo& f, const auto&, const auto&) {
    EXPECT_THAT(table.columns, Contains(Text(f.key)));
  });
  Metrics metrics;
  for_each_metric(
      metrics, [&](const FieldInfo& f, const auto&) { EXPECT_THAT(table.columns, Contains(Text(f.key))); });
  for (const char* name : {"sweep", "trial", "outcome", "reason", "model", "attempts", "finished_at"})
    EXPECT_THAT(table.columns, Contains(Text(name)));
}

TEST_F(AnswersTest, AWordOfALaterVersionIsRefusedByItsName) {
  start(1);
  sql("UPDATE trial SET precision = 'fp4'");
  EXPECT_THAT(error_in(store_->results(sweep_)), IsError(ErrorKind::kUnsupported, "fp4"));
}

TEST_F(AnswersTest, QueriesMayReadAndNothingElse) {
  start(1);
  for (const char* sql :
       {"DELETE FROM result", "DROP TABLE trial", "UPDATE sweep SET name = 'x'", "PRAGMA user_version = 9",
        "PRAGMA writable_schema = ON", "ATTACH 'other.db' AS o", "BEGIN", "VACUUM INTO 'copy.db'",
        "CREATE TEMP TABLE x(a)", "INSERT INTO meta VALUES ('a', 'b')", "SELECT load_extension('x')",
        "REINDEX", "DETACH main", "CREATE VIRTUAL TABLE v USING fts5(a)"})
    EXPECT_FALSE(store_->query(sql)) << sql;
  EXPECT_FALSE(fs::exists("copy.db"));
  EXPECT_EQ(must(store_->query("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) "
                               "SELECT sum(i) FROM n; -- done"))
                .rows[0][0],
            Value(i64{15}));
  EXPECT_EQ(must(store_->query("SELECT 1, 2.5, 'x', NULL")).rows[0],
            (std::vector<Value>{i64{1}, 2.5, Text("x"), std::monostate{}}));
}

TEST_F(AnswersTest, SqlErrorsPointAtThePlace) {
  start(1);
  const std::string message = message_of(store_->query("SELECT trial,\n  mfuu FROM results"));
  EXPECT_THAT(message, HasSubstr("no such column: mfuu"));
  EXPECT_THAT(message, HasSubstr("  mfuu FROM results\n    ^"));
  EXPECT_THAT(error_in(store_->query("SELECT 1; SELECT 2")), IsError(ErrorKind::kInvalidValue));
  EXPECT_THAT(error_in(store_->query("  ")), IsError(ErrorKind::kInvalidValue));
  EXPECT_THAT(error_in(store_->query("DELETE FROM result")), IsError(ErrorKind::kInvalidValue));
}

TEST_F(AnswersTest, TheViewSaysWhereATrialIsAlsoInAFileOfAnEarlierVersion) {
  start(2);
  finish(plan_[0], Outcome::kOk, 1);
  const auto states = [&] {
    return must(store_->query("SELECT state, count(*) FROM results GROUP BY state ORDER BY state")).rows;
  };
  ASSERT_EQ(states().size(), 2u);
  EXPECT_EQ(states()[0][0], Value(std::string("finished")));
  EXPECT_EQ(states()[1][0], Value(std::string("pending")));
  store_.reset();
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &raw), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(raw, "DROP VIEW results; CREATE VIEW results AS SELECT 1 AS sweep", nullptr, nullptr,
                         nullptr),
            SQLITE_OK);
  sqlite3_close(raw);
  store_ = open();
  EXPECT_EQ(states().size(), 2u);
}

TEST_F(AnswersTest, WorkloadIsWhatIsLeftWithoutThePruned) {
  start(4);
  finish(plan_[0], Outcome::kOk, 1);
  finish(plan_[1], Outcome::kNodeLost);
  const auto work = must(store_->workload(sweep_));
  ASSERT_EQ(work.to_do.size(), 1u);
  EXPECT_EQ(work.to_do[0].trials, 3);
  EXPECT_GT(work.to_do[0].predicted_s, 0);
  for (const auto& done : work.done) EXPECT_GT(done.took_s(), 0);
}

TEST_F(AnswersTest, AnAttemptDuringWhichTheClockJumpedSaysNothingOfTheTimeLeft) {
  start(4);
  for (const auto& entry : {plan_[0], plan_[1]}) finish(entry, Outcome::kOk, 1);
  const auto began_at = [&](const char* started) {
    sqlite3* raw = nullptr;
    EXPECT_EQ(sqlite3_open(path_.c_str(), &raw), SQLITE_OK);
    const auto text = fmt::format(
        "UPDATE attempt SET started_unix_ns = {}, ended_unix_ns = 1800000000000000000 WHERE id = 1", started);
    EXPECT_EQ(sqlite3_exec(raw, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(raw);
    return must(store_->workload(sweep_)).done.size();
  };
  EXPECT_EQ(began_at("1799999998000000000"), began_at("1799990000000000000") + 1);
}

TEST_F(AnswersTest, ARequestOfANewerVersionBoundsNothing) {
  start(4);
  finish(plan_[0], Outcome::kOk, 1);
  for (const char* request :
       {"{}", R"({"start": "thawed", "deadlines": {"total_s": 1}})", R"({"deadlines": 3})"}) {
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &raw), SQLITE_OK);
    const auto text = fmt::format("UPDATE attempt SET request = '{}' WHERE id = 1", request);
    EXPECT_EQ(sqlite3_exec(raw, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(raw);
    EXPECT_EQ(must(store_->workload(sweep_)).done.size(), 1u) << request;
  }
}

TEST_F(AnswersTest, QueriesSeeWhatWasStoredSince) {
  start(2);
  EXPECT_EQ(column("outcome").size(), 2u);
  finish(plan_[0], Outcome::kOk, 1);
  EXPECT_EQ(must(store_->query("SELECT count(*) FROM results WHERE outcome = 'ok'")).rows[0][0],
            Value(i64{1}));
}

TEST_F(AnswersTest, ProgressCountsWhatIsLeft) {
  start(3);
  finish(plan_[0], Outcome::kOk, 1);
  begin(plan_[1]);
  const Progress p = must(store_->progress(sweep_));
  EXPECT_EQ(p.total, 3);
  EXPECT_EQ(p.pending, 2);
  EXPECT_EQ(p.by_outcome, (std::vector<std::pair<Outcome, i64>>{{Outcome::kOk, 1}}));
}

TEST_F(AnswersTest, ProgressFollowsTheWritesOfEveryConnection) {
  start(3);
  auto watcher = open(quick(), Mode::kReadOnly);
  const auto both_say = [&](i64 running, i64 pending) {
    for (Store* store : {store_.get(), watcher.get(), store_.get(), watcher.get()}) {
      const Progress p = must(store->progress(sweep_));
      EXPECT_EQ(p.total, 3);
      EXPECT_EQ(p.running, running);
      EXPECT_EQ(p.pending, pending);
    }
  };
  both_say(0, 3);
  finish(plan_[0], Outcome::kOk, 1);
  both_say(0, 2);
  const Attempt attempt = begin(plan_[1]);
  IngestBatch batch;
  batch.allocation = allocation_, batch.new_offset = offset_ += 100;
  batch.started.emplace_back(attempt.id, 5);
  must(store_->ingest(batch));
  both_say(1, 1);
  EXPECT_EQ(must(store_->progress(sweep_ + 1)).total, 0);
  both_say(1, 1);
}

}  // namespace
}  // namespace sweep::store
