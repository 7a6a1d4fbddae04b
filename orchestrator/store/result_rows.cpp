#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "orchestrator/store/rows.h"

namespace sweep::store {

// The sorter of SQLite would carry all columns of every row along.
void put_in_run_order(StoredResults& found) {
  const auto place = [&](std::size_t at) { return found.places[at]; };
  std::vector<std::size_t> order(found.rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (std::ranges::is_sorted(order, {}, place)) return;
  std::ranges::sort(order, {}, place);
  StoredResults sorted;
  sorted.rows.reserve(order.size());
  for (const std::size_t at : order) {
    sorted.rows.push_back(std::move(found.rows[at]));
    sorted.places.push_back(found.places[at]);
  }
  found = std::move(sorted);
}

void read_results(Transaction& work, const Selects* values, std::string_view where,
                  std::initializer_list<i64> keys, StoredResults& found) {
  SpecCache specs;
  const std::string sql = fmt::format(R"(
      SELECT s.name, t.id, CASE WHEN p.final_attempt IS NULL THEN p.reason ELSE r.reason END, r.evidence,
             p.outcome, r.oom_kind, p.attempts, r.finished_unix_ns, p.predicted_bytes, p.predicted_step_ms,
             t.spec, p.model, p.labels, p.state, p.key, p.place, p.rule{}
      FROM plan_entry p
      JOIN sweep s ON s.id = p.sweep
      JOIN trial t ON t.key = p.trial
      LEFT JOIN result r ON r.attempt = p.final_attempt
      WHERE p.state <> State::kRetired AND {})",
                                      values ? ", " + values->axes + ", " + values->metrics : "", where);
  Statement* select = work.ready(sql);
  int parameter = 0;
  for (const i64 key : keys)
    if (select) select->put(++parameter, key);
  Rows rows(work, select);
  while (rows.next()) {
    ResultRow& row = found.rows.emplace_back();
    found.places.push_back({rows.get<i64>(15), rows.get<i64>(14)});
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
    if (!values) continue;
    read_metrics(rows, read_axes(rows, 17, row.trial), row.metrics);
    if (!row.metrics.predicted_bytes) rows.read(8, row.metrics.predicted_bytes);
    if (!row.metrics.predicted_ms) rows.read(9, row.metrics.predicted_ms);
  }
}

std::vector<ResultRow> result_rows(Transaction& work, const Selects& selects, std::string_view where,
                                   std::initializer_list<i64> keys, std::vector<i64>* entries) {
  StoredResults found;
  read_results(work, &selects, where, keys, found);
  put_in_run_order(found);
  if (entries)
    for (const RunPlace& place : found.places) entries->push_back(place.stored);
  return std::move(found.rows);
}

}  // namespace sweep::store
