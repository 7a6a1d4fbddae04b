#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "orchestrator/store/rows.h"
#include "schema/run_order.h"

namespace sweep::store {
namespace {

// The sorter of SQLite would carry all columns of every row along.
void put_in_run_order(std::vector<ResultRow>& rows, std::vector<i64>& entries,
                      const std::vector<RunPlace>& places) {
  const auto place = [&](std::size_t at) { return places[at]; };
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (std::ranges::is_sorted(order, {}, place)) return;
  std::ranges::sort(order, {}, place);
  std::vector<ResultRow> sorted;
  std::vector<i64> sorted_entries;
  sorted.reserve(rows.size());
  sorted_entries.reserve(rows.size());
  for (const std::size_t at : order) {
    sorted.push_back(std::move(rows[at]));
    sorted_entries.push_back(entries[at]);
  }
  rows = std::move(sorted);
  entries = std::move(sorted_entries);
}

}  // namespace

std::vector<ResultRow> result_rows(Transaction& work, const Selects& selects, std::string_view where,
                                   std::initializer_list<i64> keys, std::vector<i64>* entries) {
  std::vector<ResultRow> out;
  SpecCache specs;
  const std::string sql = fmt::format(R"(
      SELECT s.name, t.id, CASE WHEN p.final_attempt IS NULL THEN p.reason ELSE r.reason END, r.evidence,
             p.outcome, r.oom_kind, p.attempts, r.finished_unix_ns, p.predicted_bytes, p.predicted_step_ms,
             t.spec, p.model, p.labels, p.state, p.key, p.place, p.rule, {}, {}
      FROM plan_entry p
      JOIN sweep s ON s.id = p.sweep
      JOIN trial t ON t.key = p.trial
      LEFT JOIN result r ON r.attempt = p.final_attempt
      WHERE p.state <> State::kRetired AND {})",
                                      selects.axes, selects.metrics, where);
  Statement* select = work.ready(sql);
  int parameter = 0;
  for (const i64 key : keys)
    if (select) select->put(++parameter, key);
  Rows rows(work, select);
  std::vector<i64> keys_read;
  std::vector<RunPlace> places;
  while (rows.next()) {
    ResultRow& row = out.emplace_back();
    keys_read.push_back(rows.get<i64>(14));
    places.push_back({rows.get<i64>(15), keys_read.back()});
    rows.read(0, row.sweep);
    rows.read(1, row.trial_id);
    rows.read(2, row.reason);
    rows.read(3, row.evidence);
    if (rows.null(4))
      rows.read(13, row.state);  // no answer yet: where it is
    else
      rows.read(4, row.outcome);
    if (const auto state = rows.get<State>(13); !rows.null(4) && state != State::kFinished) row.again = state;
    rows.read(5, row.oom_kind);
    rows.read(6, row.attempts);
    rows.read(7, row.finished_unix_ns);
    row.trial.spec = spec_of(specs, rows.text(10));
    rows.read(11, row.trial.model);
    rows.read(12, row.trial.labels);
    rows.read(16, row.rule);
    read_metrics(rows, read_axes(rows, 17, row.trial), row.metrics);
    if (!row.metrics.predicted_bytes) rows.read(8, row.metrics.predicted_bytes);
    if (!row.metrics.predicted_ms) rows.read(9, row.metrics.predicted_ms);
  }
  put_in_run_order(out, keys_read, places);
  if (entries) *entries = std::move(keys_read);
  return out;
}

}  // namespace sweep::store
