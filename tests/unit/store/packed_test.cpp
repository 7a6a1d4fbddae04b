// Packed columns, and results() which reads them, say what the tables say, whatever happened to the rows and whoever did it.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <tuple>

#include "orchestrator/store/packed_column.h"
#include "schema/columns.h"
#include "store_fixture.h"

namespace sweep::store {
namespace {

using Text = std::string;

std::vector<Value> unpacked(const PackedColumn& column) {
  std::vector<Value> out;
  for (std::size_t row = 0; row < column.size(); ++row) out.push_back(value_of(column.at(row)));
  return out;
}

TEST(PackedColumn, GivesBackWhatWasPacked) {
  std::mt19937 random(7);
  for (const unsigned distinct : {1u, 2u, 300u, 70'000u}) {
    for (int kind = 0; kind < 4; ++kind) {
      std::vector<Value> values;
      for (int i = 0; i < 2'000; ++i) {
        const i64 n = static_cast<i64>(random() % distinct);
        const Value one[] = {Value{n - 1}, Value{static_cast<double>(n) / 3}, Value{Text(n % 40, 'x')}};
        values.push_back(kind == 3 ? one[random() % 3] : one[kind]);
        if (distinct > 1 && random() % 7 == 0) values.back() = {};
      }
      const Text bytes = pack_column(values);
      const auto column = PackedColumn::parse(bytes);
      ASSERT_TRUE(column) << distinct << ' ' << kind;
      EXPECT_EQ(unpacked(*column), values) << distinct << ' ' << kind;
    }
  }
}

TEST(PackedColumn, TheExtremesOfANumberAreNumbers) {
  std::vector<Value> values = {std::numeric_limits<i64>::min(), std::numeric_limits<i64>::max(), {}, 0.0};
  for (i64 i = 0; i < 1'000; ++i) values.emplace_back(i);
  values.emplace_back(std::numeric_limits<double>::denorm_min());
  const Text bytes = pack_column(values);
  EXPECT_EQ(unpacked(PackedColumn::parse(bytes).value()), values);
}

TEST(PackedColumn, BytesThatAreNotWholeAreRefused) {
  const Text bytes = pack_column(std::vector<Value>{i64{1}, Text("two"), 3.0, {}, i64{1}});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(PackedColumn::parse(std::string_view(bytes).substr(0, size))) << size;
  EXPECT_FALSE(PackedColumn::parse(bytes + "x"));
  Text wrong = bytes;
  wrong.back() = '\x7f';  // a code without a word
  EXPECT_FALSE(PackedColumn::parse(wrong));
}

class PackedRows : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    dependencies_.most_unpacked = 5;
  }
  // Every row by trial, read from the tables one by one.
  std::map<Text, ResultRow> from_tables(i64 sweep) {
    std::map<Text, ResultRow> out;
    for (auto& row : must(store_->results_of(must(store_->result_columns(sweep, {})).entry)))
      out[row.trial_id] = std::move(row);
    return out;
  }
  // Every column of every row, by trial.
  using Rows = std::map<Text, std::vector<Value>, std::less<>>;
  static Rows by_columns(const std::map<Text, ResultRow>& rows) {
    Rows out;
    for (const auto& [id, row] : rows) {
      auto& values = out[id];
      values.reserve(columns().size());
      for (const auto& column : columns()) values.push_back(column.get(row));
    }
    return out;
  }
  Rows from_columns(i64 sweep) {
    ColumnSelection selection;
    for (const auto& column : columns()) selection.coded.emplace_back(column.key);
    const ResultColumns read = must(store_->result_columns(sweep, selection));
    Rows out;
    for (std::size_t row = 0; row < read.size(); ++row) out[Text(read.trial[row])].reserve(columns().size());
    for (const auto& column : columns()) {
      const CodedColumn& coded = read.coded.find(column.key)->second;
      for (std::size_t row = 0; row < read.size(); ++row)
        out.find(read.trial[row])->second.push_back(coded.at(row));
    }
    return out;
  }
  i64 count(const Text& table) {
    return std::get<i64>(must(store_->query("SELECT count(*) FROM " + table)).rows[0][0]);
  }
  static auto members(const ResultRow& r) {
    return std::tie(r.sweep, r.trial_id, r.reason, r.evidence, r.state, r.outcome, r.oom_kind, r.trial,
                    r.metrics, r.attempts, r.rule, r.finished_unix_ns, r.again);
  }
  // results() is the tables' rows in the order of the plan.
  void expect_results(i64 sweep) { expect_results(sweep, from_tables(sweep)); }
  void expect_results(i64 sweep, const std::map<Text, ResultRow>& tables) {
    std::vector<Text> ids, in_plan_order;
    for (const ResultRow& row : must(store_->results(sweep))) {
      ids.push_back(row.trial_id);
      EXPECT_TRUE(members(row) == members(tables.at(row.trial_id))) << row.trial_id;
    }
    EXPECT_EQ(ids.size(), tables.size());
    for (const PlanEntry& each : must(store_->plan(sweep)))
      if (tables.contains(each.id)) in_plan_order.push_back(each.id);
    EXPECT_EQ(ids, in_plan_order);
  }
  void expect_same(i64 sweep) {
    const auto tables = from_tables(sweep);
    EXPECT_EQ(from_columns(sweep), by_columns(tables));
    expect_results(sweep, tables);
  }
  // Gives all packed rows of a sweep of one block this value, behind the store's back.
  void overwrite(i64 sweep, const Text& name, const Value& value) {
    Text hex;
    for (const char byte :
         pack_column(std::vector<Value>(must(store_->result_columns(sweep, {})).size(), value)))
      hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    sql("UPDATE packed SET data = x'" + hex + "' WHERE name = '" + name + "'");
  }
  StoreDependencies dependencies_ = quick();

  // A sweep of its own with 120 rows, some pruned; numbers repeat, are missing or are no numbers.
  i64 bring(unsigned seed) {
    std::mt19937 random(seed);
    std::vector<ImportedRow> rows;
    for (i64 i = 0; i < 120; ++i) {
      ImportedRow row;
      row.entry = entry(i + 1, i % 3 ? "tiny" : "large", 1 + i % 4);
      row.entry.trial.labels = i % 5 ? "" : R"({"size":"a \"<b>\" é"})";
      if (random() % 8 == 0) row.entry.trial.memory_cap_bytes = 1 << 30;
      if (random() % 9 == 0) row.entry.trial.grad_accum = 0;  // it was not resolved
      row.entry.trial.hardware = i % 2 ? "cpu" : "h100-sxm-80gb", row.entry.trial.packing = i % 7 == 0;
      row.entry.trial.precision = i % 3 ? Precision::kBf16 : Precision::kFp32;
      row.entry.id = trial_id(row.entry.trial);
      if (random() % 6 == 0) {
        row.entry.admitted = false, row.entry.reason = "too large";
      } else {
        Result& r = row.result.emplace();
        r.trial_id = row.entry.id, r.finished_unix_ns = i64(random());
        r.outcome = random() % 4 ? Outcome::kOk : Outcome::kOom;
        if (random() % 5) r.metrics.tokens_per_s_gpu = double(random() % 50);
        if (random() % 3 == 0) r.metrics.mfu = std::numeric_limits<double>::quiet_NaN();
        if (random() % 2) r.metrics.peak_allocated_bytes = i64(random());
        if (r.outcome != Outcome::kOk) r.reason = "no room";
      }
      rows.push_back(std::move(row));
    }
    SweepRow sweep;
    sweep.name = "brought-" + std::to_string(seed);
    must(store_->import_rows(sweep, rows));
    return must(store_->find_sweep(sweep.name)).id;
  }
};

TEST_F(PackedRows, SayWhatTheTablesSay) {
  store_ = open(dependencies_);
  const i64 first = bring(1), second = bring(2);
  EXPECT_EQ(count("loose"), 0);
  EXPECT_GT(count("packed"), 10);
  expect_same(first);
  expect_same(second);
}

TEST_F(PackedRows, SayTheAxisThatAProgramDoesNotKnow) {
  store_ = open(dependencies_);
  Text known = " ";
  for (const auto& column : columns())
    if (column.role == Role::kAxis && column.key != "seq_len") known += Text(column.key) + " ";
  std::vector<ImportedRow> rows;
  for (i64 i = 0; i < 20; ++i) {
    ImportedRow& row = rows.emplace_back();
    row.entry = entry(i + 1);
    row.entry.trial.seq_len = 77, row.entry.trial.labels = fmt::format(R"({{"@axes":"{}"}})", known);
    row.entry.id = trial_id(row.entry.trial);
    row.entry.admitted = false;
  }
  SweepRow sweep;
  sweep.name = "command";
  must(store_->import_rows(sweep, rows));
  ASSERT_EQ(count("loose"), 0);
  expect_same(must(store_->find_sweep("command")).id);
}

TEST_F(PackedRows, FollowEveryStepOfARun) {
  start(40);
  must(store_->release_lease(sweep_));
  store_ = open(dependencies_);
  ASSERT_FALSE(must(store_->take_lease(sweep_)).has_value());
  std::mt19937 random(3);
  for (int step = 0; step < 60; ++step) {
    const auto waiting = must(store_->pending(sweep_, 100));
    const auto next = waiting.empty() ? plan_.front() : waiting[random() % waiting.size()].entry;
    switch (random() % 5) {
      case 0:
        if (!waiting.empty()) begin(next);
        break;
      case 1: {
        std::vector<PlanEntry> smaller(plan_.begin(), plan_.begin() + 20 + i64(random() % 20));
        must(store_->sync_plan(sweep_, smaller, {}));
        must(store_->sync_plan(sweep_, random() % 2 ? plan_ : smaller, {}));
        break;
      }
      case 2: {
        const Outcome again[] = {Outcome::kOom};
        must(store_->reopen(sweep_, again));
        break;
      }
      default:
        if (waiting.empty()) break;
        finish(next, random() % 3 ? Outcome::kOk : Outcome::kOom, double(random() % 9));
    }
    expect_same(sweep_);
    EXPECT_LE(count("loose"), 10) << "attempts that begin wait for the next result to be packed";
  }
}

TEST_F(PackedRows, SeeWhatIsChangedByHand) {
  store_ = open(dependencies_);
  const i64 sweep = bring(4);
  for (const char* change :
       {"UPDATE result SET tokens_per_s_gpu = 1e6 WHERE attempt % 7 = 0",
        "UPDATE plan_entry SET model = 'renamed' WHERE key % 11 = 0",
        "UPDATE trial SET dp = 77 WHERE key % 13 = 0", "UPDATE sweep SET name = 'other'",
        "DELETE FROM result WHERE attempt % 17 = 0", "DELETE FROM plan_entry WHERE key % 19 = 0"}) {
    sql(Text("PRAGMA foreign_keys = OFF; ") + change);
    expect_same(sweep);
  }
  bring(5);  // packs what was loose
  EXPECT_EQ(count("loose"), 0);
  expect_same(sweep);
}

TEST_F(PackedRows, FollowAResultThatAnotherSweepHasTakenOver) {
  const Text options = R"({"build":"1"})";
  start(10, options);
  for (const PlanEntry& each : plan_) finish(each, Outcome::kOk, 5);
  must(store_->release_lease(sweep_));
  store_ = open(dependencies_);
  SweepRow row;
  row.name = "again", row.options = must(sweep_options_from(options));
  const i64 again = must(store_->ensure_sweep(row)).id;
  must(store_->sync_plan(again, plan_, {}));
  ASSERT_FALSE(must(store_->take_lease(again)).has_value());
  ASSERT_EQ(must(store_->reuse(again, "1", "")).trials, 10);
  ASSERT_EQ(count("loose"), 0);
  for (const char* change : {"UPDATE result SET tokens_per_s = 7 WHERE attempt % 3 = 0",
                             "DELETE FROM result WHERE attempt % 3 = 1",
                             "REPLACE INTO result SELECT * FROM result WHERE attempt % 3 = 2"}) {
    sql(change);
    expect_same(again);
  }
  EXPECT_EQ(count("loose"), 20) << "the entries of both sweeps";
}

TEST_F(PackedRows, ResultsAreReadFromThem) {
  store_ = open(dependencies_);
  const i64 sweep = bring(9);
  overwrite(sweep, "tokens_per_s_gpu", 123.0);
  for (const ResultRow& row : must(store_->results(sweep))) EXPECT_EQ(row.metrics.tokens_per_s_gpu, 123.0);
}

TEST_F(PackedRows, ANumberThatIsNotWholeIsNoIntegersValue) {
  store_ = open(dependencies_);
  const i64 sweep = bring(10);
  overwrite(sweep, "peak_allocated_bytes", 1e300);
  expect_results(sweep);
}

TEST_F(PackedRows, RowsAreReadInFullByTheirEntry) {
  store_ = open(dependencies_);
  const i64 sweep = bring(6);
  const ResultColumns read = must(store_->result_columns(sweep, {}));
  ASSERT_GT(read.size(), 10u);
  const i64 wanted[] = {read.entry[7], read.entry[2]};
  const auto rows = must(store_->results_of(wanted));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].trial_id, read.trial[7]);
  EXPECT_EQ(rows[1].trial_id, read.trial[2]);
}

TEST_F(PackedRows, AChangedPlanIsStoredBeforeItIsPacked) {
  start(3);
  for (i64 round = 1; round <= 3; ++round) {
    for (auto& each : plan_) each.order += round;
    EXPECT_EQ(message_of(store_->sync_plan(sweep_, plan_, {})), "(no error)");
  }
  EXPECT_EQ(must(store_->plan(sweep_)).front().order, plan_.front().order);
}

TEST_F(PackedRows, DamageIsAnErrorWithACode) {
  store_ = open(dependencies_);
  const i64 sweep = bring(8);
  sql("UPDATE packed SET data = x'0102' WHERE name = 'model'");
  EXPECT_THAT(error_in(store_->result_columns(sweep, {.coded = {"model"}, .numbers = {}})),
              IsError(ErrorKind::kUnreadable));
  sql("UPDATE packed SET data = x'0102' WHERE name = 'tokens_per_s_gpu'");
  expect_results(sweep);
  const auto tables = from_tables(sweep);
  sql("UPDATE packed SET data = x'0102' WHERE name = 'entry'");
  EXPECT_THAT(error_in(store_->result_columns(sweep, {})), IsError(ErrorKind::kUnreadable));
  expect_results(sweep, tables);
  sql("DELETE FROM packed; INSERT OR IGNORE INTO loose SELECT key FROM plan_entry");
  expect_same(sweep);
}

}  // namespace
}  // namespace sweep::store
