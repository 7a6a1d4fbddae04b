// The best of each group from the columns of a database is the best of its rows, and both are what ranking
// them one by one says.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "orchestrator/answers/format.h"
#include "orchestrator/answers/statistics/best.h"
#include "tests/unit/store/store_fixture.h"

namespace sweep {
namespace {

class BestColumns : public store::StoreTest {
 protected:
  // Few distinct values, so that there are ties of every kind; some are missing.
  static ImportedRow random_row(i64 number, std::mt19937& random) {
    ImportedRow row;
    row.entry = entry(number + 1, random() % 3 ? "tiny" : "large", i64{1} << random() % 4);
    Trial& trial = row.entry.trial;
    trial.tp = i64{1} << random() % 3, trial.hardware = random() % 4 ? "h100-sxm-80gb" : "cpu";
    if (random() % 3 == 0) trial.labels = random() % 2 ? R"({"size":1,"kind":"a"})" : R"({"size":1.0})";
    if (random() % 4 == 0) trial.memory_cap_bytes = i64{1} << 30;
    row.entry.id = trial_id(trial);
    if (random() % 12 == 0) {
      row.entry.admitted = false;
      return row;
    }
    Result& result = row.result.emplace();
    result.trial_id = row.entry.id, result.outcome = random() % 9 ? Outcome::kOk : Outcome::kOom;
    if (result.outcome != Outcome::kOk || random() % 9 == 0) return row;
    const double step = 1 + double(random() % 40);
    Metrics& m = result.metrics;
    m.step_ms = step, m.tokens_per_s_gpu = 1000 / step, m.cost_per_mt = step / 3;
    if (random() % 4) m.step_ms_ci_low = step * 0.97, m.step_ms_ci_high = step * 1.02;
    if (random() % 3) m.peak_allocated_bytes = i64(random() % (i64{2} << 30));
    return row;
  }

  std::vector<ResultRow> bring(unsigned seed) {
    store::StoreDependencies dependencies = quick();
    dependencies.most_unpacked = 20;
    store_ = open(dependencies);
    std::mt19937 random(seed);
    std::vector<ImportedRow> rows;
    for (i64 i = 0; i < 160; ++i) rows.push_back(random_row(i, random));
    store::SweepRow sweep;
    sweep.name = "s";
    must(store_->import_rows(sweep, rows));
    sweep_ = must(store_->find_sweep("s")).id;
    sql("UPDATE plan_entry SET state = 0, outcome = NULL, final_attempt = NULL WHERE key % 31 = 0");
    return must(store_->results(sweep_));
  }

  std::vector<answers::BestOfGroup> from_store(const answers::BestOptions& options) {
    const auto columns = must(store_->result_columns(sweep_, answers::best_columns_with_axes(options)));
    return must(answers::best(columns, options,
                              [&](std::span<const i64> entries) { return store_->results_of(entries); }));
  }
};

bool is_in(const answers::BestOfGroup& group, const ResultRow& row, const std::vector<answers::Field>& keys) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto value = keys[i].of(row);
    if (answers::value_less(value, group.key[i]) || answers::value_less(group.key[i], value)) return false;
  }
  return true;
}

// Ranks one group the long way.
void check_group(const answers::BestOfGroup& group, const std::vector<ResultRow>& rows,
                 const answers::BestOptions& options) {
  const auto metric = *answers::resolve_metric(options.metric);
  const bool lower = answers::lower_is_better(options.metric);
  std::vector<answers::Field> keys;
  for (const auto& name : options.group_by) keys.push_back(*answers::Field::resolve(name, rows));
  std::vector<std::pair<double, const ResultRow*>> ranked;
  i64 not_run = 0, pruned = 0, not_ok = 0, not_measured = 0, too_full = 0, unknown = 0;
  for (const ResultRow& row : rows) {
    if (!is_in(group, row, keys)) continue;
    const auto value = answers::number(metric.of(row));
    const auto memory = answers::device_memory(row);
    const auto peak = row.metrics.peak_allocated_bytes;
    if (row.state != State::kFinished)
      ++not_run;
    else if (row.outcome == Outcome::kPruned)
      ++pruned;
    else if (row.outcome != Outcome::kOk)
      ++not_ok;
    else if (!value)
      ++not_measured;
    else if (options.headroom && (!memory || !peak))
      ++unknown;
    else if (options.headroom && double(*peak) > (1 - *options.headroom) * double(*memory))
      ++too_full;
    else
      ranked.emplace_back(lower ? *value : -*value, &row);
  }
  EXPECT_EQ(std::tuple(group.not_run, group.pruned, group.not_ok, group.not_measured, group.too_full,
                       group.unknown_headroom),
            std::tuple(not_run, pruned, not_ok, not_measured, too_full, unknown));
  ASSERT_EQ(group.ranked, i64(ranked.size()));
  ASSERT_EQ(group.winner.has_value(), !ranked.empty());
  if (ranked.empty()) return;
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second->trial_id < b.second->trial_id;
  });
  const ResultRow& winner = *ranked.front().second;
  EXPECT_EQ(group.winner->trial_id, winner.trial_id);
  const auto interval = answers::interval_of(winner, options.metric);
  std::vector<std::string> ties, others;
  for (std::size_t i = 1; i < ranked.size(); ++i) {
    const auto other = answers::interval_of(*ranked[i].second, options.metric);
    const bool tie =
        ranked[i].first == ranked.front().first || (interval && other && interval->overlaps(*other));
    (tie ? ties : others).push_back(ranked[i].second->trial_id);
  }
  others.resize(std::min(others.size(), options.runners_up));
  EXPECT_EQ(group.ties, ties);
  EXPECT_EQ(group.runners_up, others);
}

TEST_F(BestColumns, AreRankedAsTheRowsAre) {
  const auto rows = bring(1);
  for (const auto& by : std::vector<std::vector<std::string>>{
           {}, {"model"}, {"model", "nodes"}, {"tp", "nodes", "hardware"}, {"size"}, {"kind", "outcome"}}) {
    for (const char* metric : {"tokens_per_s_gpu", "step_ms", "cost_per_mt", "peak_allocated_bytes", "mfu"}) {
      for (const std::optional<double> headroom : {std::optional<double>(), std::optional<double>(0.05)}) {
        const answers::BestOptions options{.group_by = by, .metric = metric, .headroom = headroom};
        const auto groups = from_store(options);
        EXPECT_EQ(answers::best_json(groups, options),
                  answers::best_json(*answers::best(rows, options), options));
        for (const auto& group : groups) check_group(group, rows, options);
      }
    }
  }
}

TEST_F(BestColumns, TellTheSameAxesApart) {
  const auto rows = bring(3);
  const auto columns = must(store_->result_columns(sweep_, answers::best_columns_with_axes({})));
  std::vector<std::string> of_rows, of_columns;
  for (const auto& field : answers::varying(rows)) of_rows.push_back(field.name());
  for (const auto& field : answers::varying(columns)) of_columns.push_back(field.name());
  EXPECT_EQ(of_columns, of_rows);
}

TEST_F(BestColumns, AnUnknownNameIsRefusedAlike) {
  const auto rows = bring(4);
  const answers::BestOptions options{.group_by = {"siz"}};
  const auto columns = must(store_->result_columns(sweep_, answers::best_columns(options)));
  EXPECT_EQ(store::message_of(answers::best(columns, options, {})),
            store::message_of(answers::best(rows, options)));
}

}  // namespace
}  // namespace sweep
