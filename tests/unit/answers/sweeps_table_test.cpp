// The list of the sweeps of a database.
#include "orchestrator/answers/tables/sweeps_table.h"

#include <gtest/gtest.h>

#include <map>

#include "schema/codec.h"
#include "tests/support/temporary_folder.h"

namespace sweep::answers {
namespace {

store::SweepRow sweep_of(const std::string& name) {
  store::SweepRow out;
  out.name = name;
  return out;
}

ImportedRow measured_row(i64 seq_len) {
  ImportedRow out;
  out.entry.trial.model = "tiny", out.entry.trial.spec.layers = 1, out.entry.trial.seq_len = seq_len;
  out.entry.id = trial_id(out.entry.trial);
  Result& result = out.result.emplace();
  result.trial_id = out.entry.id, result.outcome = Outcome::kOk;
  return out;
}

// The one attempt of a trial is its answer.
store::TrialDecision last_attempt(const store::TrialHistory& history, const SweepOptions&) {
  const auto& last = history.attempts.back();
  return {State::kFinished, last.id, last.outcome};
}

TEST(SweepsTable, HasTheKindTheCountsAndWhoRunsEachSweep) {
  const TemporaryFolder dir;
  store::StoreDependencies dependencies;
  dependencies.decide_trial = last_attempt;
  dependencies.now_unix_ns = [] { return i64{1'700'000'000'000'000'000}; };
  const auto store = store::Store::open(dir / "s.db", store::Mode::kReadWrite, dependencies);
  ASSERT_TRUE(store);
  ASSERT_TRUE((*store)->ensure_sweep(sweep_of("test")));
  ASSERT_TRUE((*store)->ensure_sweep(sweep_of("other.rehearsal")));
  const ImportedRow rows[] = {measured_row(64), measured_row(65)};
  ASSERT_TRUE((*store)->import_rows(sweep_of("sheet"), rows));
  const auto listed = listed_sweeps(**store, [](const store::SweepRow& sweep) {
    return Expected<std::string>(sweep.name == "test" ? "me" : "");
  });
  ASSERT_TRUE(listed);
  const Table table = sweeps_table(*listed);
  ASSERT_EQ(table.rows.size(), 3u);
  std::map<std::string, std::map<std::string, Value>> cells;
  for (const auto& row : table.rows)
    for (std::size_t i = 0; i < row.size(); ++i)
      cells[std::get<std::string>(row[0])][table.columns[i]] = row[i];
  EXPECT_EQ(cells["test"]["kind"], Value(std::string("measured")));
  EXPECT_EQ(cells["test"]["run_by"], Value(std::string("me")));
  EXPECT_EQ(cells["test"]["last_result"], Value()) << "it has none";
  EXPECT_EQ(cells["other.rehearsal"]["kind"], Value(std::string("rehearsal")));
  EXPECT_EQ(cells["sheet"]["kind"], Value(std::string("imported")));
  EXPECT_EQ(cells["sheet"]["trials"], Value(i64{2}));
  EXPECT_EQ(cells["sheet"]["ok"], Value(i64{2}));
  EXPECT_EQ(cells["sheet"]["last_result"], Value(std::string("2023-11-14T22:13:20.000Z")));
  EXPECT_FALSE(
      listed_sweeps(**store, [](const store::SweepRow&) -> Expected<std::string> { return fail("x"); }));
}

}  // namespace
}  // namespace sweep::answers
