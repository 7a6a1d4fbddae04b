// Every stored field of every record comes back as it was written, with a value of its own: through ingest,
// merge and import, and where the file lacks its column.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "orchestrator/store/record_sql.h"
#include "orchestrator/store/stored_rows.h"
#include "store_fixture.h"
#include "tests/support/filled_records.h"

namespace sweep::store {
namespace {

using Text = std::string;

using sweep::filled::Filler;

template <class T>
Text shown(const T& value) {
  return ::testing::PrintToString(value);
}
template <Recorded T>
Text shown(const T& record) {
  return to_text(record);
}
Text shown(const std::vector<SentTraffic>& sent) {
  Text out;
  for (const auto& each : sent) out += to_text(each);
  return out;
}

// The stored fields as text by column, without those that number the row.
template <class Record>
std::map<Text, Text> stored_values(const Record& record) {
  std::map<Text, Text> out;
  for_each_field(record, [&](const auto& field, const auto& member) {
    if constexpr (std::remove_cvref_t<decltype(field)>::kIsStored) {
      const Text column = field.column;
      if (column != "attempt" && column != "id" && column != "rank") out[column] = shown(member);
    }
  });
  return out;
}

class Records : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    start(1);
    const Attempt attempt = begin(plan_[0]);
    record_ = filler_.filled<RankRecord>();
    exit_ = filler_.filled<RankExit>();
    end_ = filler_.filled<AttemptEnd>();
    node_ = filler_.filled<NodeRecord>();
    result_ = filler_.filled<Result>();
    record_.attempt = exit_.attempt = end_.attempt = result_.attempt = attempt.id;
    record_.rank = exit_.rank = node_.node = 1;
    result_.trial_id = attempt.trial_id;
    IngestBatch batch;
    batch.allocation = allocation_;
    batch.new_offset = 1;
    batch.rank_records = {record_};
    batch.rank_exits = {exit_};
    batch.ends = {end_};
    batch.nodes = {node_};
    batch.results = {result_};
    must(store_->ingest(batch));
  }
  void expect_all(Store& store, i64 sweep) {
    const auto attempt = must(store.attempts(sweep, plan_[0].id)).at(0);
    const auto said = must(store.records_of(attempt.id));
    ASSERT_EQ(said.records.size(), 1u);
    EXPECT_EQ(stored_values(said.records[0]), stored_values(record_));
    EXPECT_EQ(said.records[0].samples, record_.samples);
    ASSERT_EQ(said.exits.size(), 1u);
    EXPECT_EQ(stored_values(said.exits[0]), stored_values(exit_));
    ASSERT_TRUE(said.end);
    EXPECT_EQ(stored_values(*said.end), stored_values(end_));
    const auto result = must(must(store.result_of(attempt.id)));
    EXPECT_EQ(stored_values(result), stored_values(result_));
    EXPECT_EQ(result.metrics, result_.metrics);
    const auto nodes = must(store.environments(sweep));
    ASSERT_EQ(nodes.size(), 1u);
    NodeRecord node;
    node.node = nodes[0].node, node.host = nodes[0].host, node.facts = nodes[0].facts;
    EXPECT_EQ(stored_values(node), stored_values(node_));
  }

  Filler filler_;
  RankRecord record_;
  RankExit exit_;
  AttemptEnd end_;
  NodeRecord node_;
  Result result_;
};

TEST_F(Records, EveryFieldIsReadAsItWasIngested) {
  expect_all(*store_, sweep_);
}

TEST_F(Records, EveryFieldIsMerged) {
  must(store_->release_lease(sweep_));
  auto other = must(Store::open(dir_ / "other.db", Mode::kReadWrite, quick()));
  const fs::path files[] = {path_};
  must(other->merge(files));
  expect_all(*other, must(other->find_sweep("s")).id);
}

TEST_F(Records, EveryFieldOfAnImportedResultIsStored) {
  ImportedRow row;
  row.entry = plan_[0];
  row.result = result_;
  SweepRow sweep;
  sweep.name = "brought";
  const ImportedRow rows[] = {row};
  must(store_->import_rows(sweep, rows));
  const i64 brought = must(store_->find_sweep("brought")).id;
  const auto attempt = must(must(store_->final_attempt(brought, plan_[0].id)));
  auto stored = must(must(store_->result_of(attempt)));
  EXPECT_EQ(stored.metrics, result_.metrics);
  stored.finished_unix_ns = result_.finished_unix_ns;  // an import stamps its results
  EXPECT_EQ(stored_values(stored), stored_values(result_));
}

// Empty would read as "not measured", which hides a damaged file.
TEST_F(Records, ARecordThatDoesNotParseIsAnErrorThatNamesTheRow) {
  const i64 attempt = record_.attempt;
  sql("UPDATE result SET evidence = '{\"cause\": 7'");
  const auto result = store_->result_of(attempt);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kUnreadable);
  EXPECT_EQ(result.error().subject, "evidence");
  EXPECT_NE(result.error().message.find(plan_[0].id), Text::npos) << result.error().message;
  EXPECT_NE(result.error().message.find(path_.string()), Text::npos);
  sql("UPDATE rank_record SET sent = '[{\"bytes\": \"many\"}]'");
  const auto records = store_->records_of(attempt);
  ASSERT_FALSE(records);
  EXPECT_EQ(records.error().subject, "sent");
  sql("UPDATE rank_record SET sent = '{}'");
  EXPECT_FALSE(store_->records_of(attempt));
  sql("UPDATE rank_record SET sent = '[]'");
  EXPECT_TRUE(store_->records_of(attempt));
}

// A field that is new in schema/records.def: older files lack its column. Nothing else has to be written for
// it.
TEST_F(Records, AFileWithoutTheColumnOfAFieldIsReadAndGetsTheColumn) {
  store_.reset();
  sql("ALTER TABLE rank_record DROP COLUMN expert_load; ALTER TABLE step_sample DROP COLUMN loss;"
      "ALTER TABLE attempt DROP COLUMN throttle");
  const i64 attempt = record_.attempt;
  auto said = must(open(quick(), Mode::kReadOnly)->records_of(attempt));
  EXPECT_EQ(said.records.at(0).expert_load, std::nullopt);
  EXPECT_EQ(said.records[0].loss_scale, record_.loss_scale);
  EXPECT_TRUE(std::isnan(said.records[0].samples.at(0).loss));
  EXPECT_EQ(said.end.value().throttle, "");
  store_ = open();
  for (const char* column : {"SELECT expert_load FROM rank_record", "SELECT loss FROM step_sample",
                             "SELECT throttle FROM attempt"})
    EXPECT_EQ(message_of(store_->query(column)), "(no error)") << column;
}

TEST(RecordFields, EveryFieldOfATableHasAColumnOfItsOwn) {
  const auto expect_distinct = [](const std::vector<StoredField>& fields) {
    std::set<Text> names;
    for (const auto& field : fields) EXPECT_TRUE(names.insert(field.column).second) << field.column;
    EXPECT_FALSE(names.empty());
  };
  expect_distinct(stored_fields<RankRecord>());
  expect_distinct(stored_fields<RankExit>());
  expect_distinct(stored_fields<StepSample>());
  expect_distinct(stored_fields<AttemptEnd>());
  expect_distinct(stored_fields<NodeRecord>());
  expect_distinct(stored_fields<Result>());
  expect_distinct(stored_fields<SweepRow>());
  expect_distinct(stored_fields<PlanEntry>());
  expect_distinct(stored_fields<StoredAllocation>());
  expect_distinct(stored_fields<LeaseHolder>());
}

}  // namespace
}  // namespace sweep::store
