// People's own SQL: only reading, parameters, bounds, and an end on request.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "schema/codec.h"
#include "tests/unit/store/store_fixture.h"

namespace sweep::store {
namespace {

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_F(StoreTest, NoTrickOfSqlWritesOrOpensAnotherFile) {
  start(2);
  finish(plan_[0], Outcome::kOk, 10.0);
  store_.reset();
  sql("PRAGMA wal_checkpoint(TRUNCATE)");
  const std::string before = bytes_of(path_);
  store_ = open(quick(), Mode::kReadOnly);
  const std::string other = (dir_ / "other.db").string();
  for (const std::string& statement : {std::string("DELETE FROM result"),
                                       std::string("WITH x AS (SELECT 1) INSERT INTO meta SELECT 'a', 'b'"),
                                       std::string("UPDATE sweep SET name = 'x'"),
                                       std::string("CREATE TEMP TABLE t(a)"),
                                       std::string("DROP VIEW results"),
                                       "ATTACH '" + other + "' AS o",
                                       std::string("DETACH main"),
                                       "VACUUM INTO '" + other + "'",
                                       std::string("VACUUM"),
                                       std::string("REINDEX"),
                                       std::string("ANALYZE"),
                                       std::string("BEGIN IMMEDIATE"),
                                       std::string("SAVEPOINT a"),
                                       std::string("PRAGMA query_only = OFF"),
                                       std::string("PRAGMA writable_schema = ON"),
                                       std::string("PRAGMA journal_mode = DELETE"),
                                       std::string("PRAGMA user_version = 99"),
                                       std::string("PRAGMA trusted_schema = ON"),
                                       std::string("SELECT * FROM pragma_journal_mode('delete')"),
                                       std::string("SELECT load_extension('x')"),
                                       std::string("SELECT writefile('" + other + "', 'x')"),
                                       std::string("SELECT edit('x')"),
                                       std::string("EXPLAIN DELETE FROM result; DELETE FROM result"),
                                       std::string("SELECT 1; PRAGMA query_only = OFF"),
                                       std::string("INSERT INTO results(trial) VALUES ('x')"),
                                       std::string("SELECT zeroblob(1000000000)")})
    EXPECT_FALSE(store_->query(statement)) << statement;
  EXPECT_FALSE(fs::exists(other));
  store_.reset();
  EXPECT_EQ(bytes_of(path_), before);
}

// Stored are all that models had at first, and of the others those that are not at their default.
TEST_F(StoreTest, EachDimensionOfAModelIsReadBack) {
  start(1);
  const nlohmann::json usual = to_json(ModelSpec{});
  for (const auto& [key, value] : usual.items()) {
    if (!value.is_boolean() && !value.is_number()) continue;
    nlohmann::json changed = usual;
    if (value.is_boolean())
      changed[key] = !value.get<bool>();
    else if (value.is_number_integer())
      changed[key] = value.get<i64>() + 3;
    else
      changed[key] = value.get<double>() + 0.5;
    PlanEntry& added = plan_.emplace_back(entry(std::ssize(plan_) + 1));
    added.trial.spec = must(from_json<ModelSpec>(changed)), added.id = trial_id(added.trial);
  }
  EXPECT_GT(plan_.size(), 20u);
  must(store_->sync_plan(sweep_, plan_, {}));
  const auto read = must(store_->plan(sweep_));
  ASSERT_EQ(read.size(), plan_.size());
  for (const PlanEntry& wanted : plan_)
    EXPECT_TRUE(std::ranges::any_of(read, [&](const PlanEntry& found) {
      return found.id == wanted.id && found.trial.spec == wanted.trial.spec;
    })) << to_json(wanted.trial.spec);
  const auto found = must(store_->query(
      "SELECT DISTINCT json_extract(model_spec, '$.experts'), json_type(model_spec, '$.kv_lora_rank') "
      "FROM results WHERE json_extract(model_spec, '$.layers') = 2"));
  EXPECT_EQ(found.rows, (std::vector<std::vector<Value>>{{i64{0}, std::monostate{}}}));
}

TEST_F(StoreTest, LabelsAreReadWithJsonEach) {
  start(2);
  sql("UPDATE plan_entry SET labels = '{\"size\":\"small\"}'");
  const auto found = must(store_->query(
      "SELECT value, count(*) FROM results, json_each(results.labels) WHERE json_each.key = 'size' "
      "GROUP BY value"));
  EXPECT_EQ(found.rows, (std::vector<std::vector<Value>>{{std::string("small"), i64{2}}}));
  must(store_->query("SELECT count(*) FROM json_tree('[1,[2]]')"));
}

TEST_F(StoreTest, ParametersAreBoundAndNeverPasted) {
  start(3);
  const auto ask = [&](const std::string& text, std::vector<std::pair<std::string, std::string>> values) {
    QueryOptions options;
    options.values = std::move(values);
    return store_->query(text, options);
  };
  EXPECT_EQ(
      must(ask("SELECT count(*) FROM results WHERE micro_batch_size >= :least", {{"least", "2"}})).rows[0][0],
      Value(i64{2}));
  EXPECT_EQ(must(ask("SELECT :word || ''", {{"word", "' OR 1=1 --"}})).rows[0][0],
            Value(std::string("' OR 1=1 --")));
  EXPECT_THAT(error_in(ask("SELECT :word", {})), IsError(ErrorKind::kMissing, "word"));
  EXPECT_THAT(error_in(ask("SELECT 1", {{"word", "x"}})), IsError(ErrorKind::kMissing, "word"));
}

TEST_F(StoreTest, AParameterIsANumberOnlyWhereItIsWrittenAsOne) {
  start(1);
  const auto bound = [&](const std::string& word) {
    QueryOptions options;
    options.values = {{"word", word}};
    return must(store_->query("SELECT :word", options)).rows[0][0];
  };
  for (const char* text : {"046", "0e1", "1e5", "00", "-0", "-01", "+1", "1.", ".5", "00.5", "inf", "nan", "",
                           "-", "0x1", "12345678901234567890", "1.5e3"})
    EXPECT_EQ(bound(text), Value(std::string(text)));
  EXPECT_EQ(bound("0"), Value(i64{0}));
  EXPECT_EQ(bound("-12"), Value(i64{-12}));
  EXPECT_EQ(bound("0.5"), Value(0.5));
  EXPECT_EQ(bound("-2.50"), Value(-2.5));
}

TEST_F(StoreTest, AnAnswerHasBoundsAndCanBeStopped) {
  start(1);
  const std::string endless =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
  QueryOptions few;
  few.most_rows = 100;
  EXPECT_THAT(error_in(store_->query(endless, few)), IsError(ErrorKind::kRefused));
  QueryOptions small;
  small.most_bytes = 1 << 20;
  EXPECT_THAT(error_in(store_->query(endless, small)), IsError(ErrorKind::kRefused));
  int asked = 0;
  QueryOptions stopped;
  stopped.stop = [&] { return ++asked > 3; };
  EXPECT_EQ(message_of(store_->query("SELECT count(*) FROM (" + endless + ")", stopped)), kStopped);
  EXPECT_EQ(must(store_->query("SELECT 1")).rows.size(), 1u);  // the next one is not stopped
}

TEST_F(StoreTest, ProvenanceTellsWhereAResultWasMeasured) {
  start(2);
  finish(plan_[0], Outcome::kOk, 10.0);
  IngestBatch batch;
  batch.allocation = allocation_, batch.new_offset = offset_ += 100;
  NodeFacts facts;
  facts.cpu = "x";
  batch.nodes = {{0, "node-a", facts}};
  must(store_->ingest(batch));
  const std::vector<std::string> ids = {plan_[1].id, plan_[0].id};
  const auto found = must(store_->provenance(sweep_, ids));
  ASSERT_EQ(found.size(), 1u);  // the other has no result yet
  EXPECT_EQ(found[0].trial_id, plan_[0].id);
  EXPECT_EQ(found[0].launcher, "local");
  ASSERT_EQ(found[0].nodes.size(), 1u);
  EXPECT_EQ(found[0].nodes[0].host, "node-a");
  const auto nodes = must(store_->environments(sweep_));
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].results, 1);
}

}  // namespace
}  // namespace sweep::store
