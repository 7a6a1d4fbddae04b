// What people and other rooms ask: progress, results, one trial, events.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/expected.h"
#include "orchestrator/store/sqlite_store.h"
#include "orchestrator/store/trial_rows.h"

namespace sweep::store {

Progress SqliteStore::count_progress(Transaction& work, i64 sweep) {
  Progress out;
  auto rows = work.rows(R"(
      SELECT state, outcome, count(*) FROM plan_entry WHERE sweep = ? GROUP BY state, outcome)",
                        sweep);
  while (rows.next()) {
    const auto state = rows.get<State>(0);
    const i64 count = rows.get<i64>(2);
    if (state == State::kRetired) {
      out.retired += count;
      continue;
    }
    out.total += count;
    if (state == State::kFinished) {
      const Outcome outcome = rows.get<Outcome>(1);
      const auto same = std::ranges::find(out.by_outcome, outcome, &std::pair<Outcome, i64>::first);
      if (same == out.by_outcome.end())
        out.by_outcome.emplace_back(outcome, count);
      else
        same->second += count;
      continue;
    }
    (state == State::kRunning ? out.running : out.pending) += count;
  }
  return out;
}

Expected<Workload> SqliteStore::workload(i64 sweep) {
  constexpr i64 kLast = 200;
  constexpr double kNs = 1e-9;
  Transaction work(*db_, Transaction::kRead);
  Workload out;
  {
    auto rows = work.rows(R"(
        SELECT t.nodes, count(*), sum(p.state = State::kRunning), COALESCE(sum(p.predicted_seconds), 0),
               sum(p.predicted_seconds IS NULL)
        FROM plan_entry p JOIN trial t ON t.key = p.trial
        WHERE p.sweep = ? AND p.state < State::kFinished
        GROUP BY t.nodes)",
                          sweep);
    while (rows.next())
      out.to_do.push_back(
          {rows.get<i64>(0), rows.get<i64>(1), rows.get<i64>(2), rows.get<double>(3), rows.get<i64>(4)});
  }
  {
    auto rows = work.rows(R"(
        SELECT p.predicted_seconds, a.started_unix_ns, a.ended_unix_ns, t.nodes, a.allocation
        FROM attempt a
        JOIN plan_entry p ON p.key = a.entry
        JOIN trial t ON t.key = p.trial
        JOIN result r ON r.attempt = a.id
        WHERE p.sweep = ? AND r.outcome = Outcome::kOk
          AND a.started_unix_ns > 0 AND a.ended_unix_ns > a.started_unix_ns
        ORDER BY a.id DESC LIMIT ?)",
                          sweep, kLast);
    while (rows.next())
      out.done.push_back({rows.null(0) ? std::nullopt : std::optional(rows.get<double>(0)),
                          kNs * static_cast<double>(rows.get<i64>(1)),
                          kNs * static_cast<double>(rows.get<i64>(2)), rows.get<i64>(3),
                          rows.get<std::string>(4)});
  }
  {
    auto rows = work.rows(R"(
        SELECT id, COALESCE(nodes, 1) FROM allocation
        WHERE sweep = ? AND ended_unix_ns IS NULL AND started_unix_ns IS NOT NULL)",
                          sweep);
    while (rows.next()) out.open.emplace_back(rows.get<std::string>(0), rows.get<i64>(1));
  }
  return work.commit(std::move(out));
}

Expected<i64> SqliteStore::version() {
  Transaction work(*db_, Transaction::kRead);
  const i64 others = work.one<i64>("PRAGMA data_version").value_or(0);
  return work.commit((others << 32) + sqlite3_total_changes64(db_->handle()));
}

Expected<Progress> SqliteStore::progress(i64 sweep) {
  Transaction work(*db_, Transaction::kRead);
  const i64 others = work.one<i64>("PRAGMA data_version").value_or(0);
  const i64 own = sqlite3_total_changes64(db_->handle());
  if (work.failed() || !counted_ || counted_->sweep != sweep || counted_->others != others ||
      counted_->own != own)
    counted_ = Counted{sweep, others, own, count_progress(work, sweep)};
  if (work.failed()) counted_.reset();
  SWEEP_TRY(work.commit());
  return counted_->progress;
}

namespace {

// The sorter of SQLite would carry all columns of every row along.
void put_in_plan_order(std::vector<ResultRow>& rows, std::vector<i64>& entries,
                       const std::vector<i64>& places) {
  const auto before = [&](std::size_t a, std::size_t b) {
    return places[a] != places[b] ? places[a] < places[b] : entries[a] < entries[b];
  };
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (std::is_sorted(order.begin(), order.end(), before)) return;
  std::sort(order.begin(), order.end(), before);
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

std::vector<ResultRow> SqliteStore::result_rows(Transaction& work, const std::string& where,
                                                std::initializer_list<i64> keys, std::vector<i64>* entries) {
  std::vector<ResultRow> out;
  SpecCache specs;
  const std::string sql = fmt::format(R"(
      SELECT s.name, t.id, CASE WHEN p.final_attempt IS NULL THEN p.reason ELSE r.reason END, r.evidence,
             p.outcome, r.oom_kind, p.attempts, r.finished_unix_ns, p.predicted_bytes, p.predicted_step_ms,
             t.spec, p.model, p.labels, p.state, p.key, p.place, {}, {}
      FROM plan_entry p
      JOIN sweep s ON s.id = p.sweep
      JOIN trial t ON t.key = p.trial
      LEFT JOIN result r ON r.attempt = p.final_attempt
      WHERE p.state <> State::kRetired AND {})",
                                      selects_.axes, selects_.metrics, where);
  Statement* select = work.ready(sql);
  int parameter = 0;
  for (const i64 key : keys)
    if (select) select->put(++parameter, key);
  Rows rows(work, select);
  std::vector<i64> keys_read, places;
  while (rows.next()) {
    ResultRow& row = out.emplace_back();
    keys_read.push_back(rows.get<i64>(14));
    places.push_back(rows.get<i64>(15));
    rows.read(0, row.sweep);
    rows.read(1, row.trial_id);
    rows.read(2, row.reason);
    rows.read(3, row.evidence);
    if (rows.null(4))
      rows.read(13, row.state);  // no answer yet: where it is
    else
      rows.read(4, row.outcome);
    rows.read(5, row.oom_kind);
    rows.read(6, row.attempts);
    rows.read(7, row.finished_unix_ns);
    row.trial.spec = spec_of(specs, rows.text(10));
    rows.read(11, row.trial.model);
    rows.read(12, row.trial.labels);
    read_metrics(rows, read_axes(rows, 16, row.trial), row.metrics);
    if (!row.metrics.predicted_bytes) rows.read(8, row.metrics.predicted_bytes);
    if (!row.metrics.predicted_ms) rows.read(9, row.metrics.predicted_ms);
  }
  put_in_plan_order(out, keys_read, places);
  if (entries) *entries = std::move(keys_read);
  return out;
}

Expected<std::vector<ResultRow>> SqliteStore::results(i64 sweep) {
  Transaction work(*db_, Transaction::kRead);
  auto out = result_rows(work, "p.sweep = ?", {sweep});
  return work.commit(std::move(out));
}

Expected<std::optional<Result>> SqliteStore::result_of(i64 attempt) {
  Transaction work(*db_, Transaction::kRead);
  std::optional<Result> out;
  {
    auto rows = work.rows(
        fmt::format(R"(
        SELECT t.id, {}, {}
        FROM result r
        JOIN attempt a ON a.id = r.attempt
        JOIN plan_entry p ON p.key = a.entry
        JOIN trial t ON t.key = p.trial
        WHERE r.attempt = ?)",
                    select_list(selects_.columns, "result", "r", stored_fields<Result>()), selects_.metrics),
        attempt);
    if (rows.next()) {
      Result& result = out.emplace();
      rows.read(0, result.trial_id);
      read_metrics(rows, read_fields(rows, 1, result), result.metrics);
    }
  }
  return work.commit(std::move(out));
}

Expected<std::optional<i64>> SqliteStore::final_attempt(i64 sweep, const std::string& trial_id) {
  Transaction work(*db_, Transaction::kRead);
  auto out = work.one<i64>(R"(
      SELECT p.final_attempt FROM plan_entry p JOIN trial t ON t.key = p.trial
      WHERE p.sweep = ? AND t.id = ?)",
                           sweep, trial_id);
  return work.commit(out);
}

Expected<std::string> SqliteStore::find_trial(i64 sweep, std::string_view prefix) {
  const bool hex =
      std::ranges::all_of(prefix, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (prefix.empty() || !hex)
    return fail(fmt::format(
        "'{}' is no trial id: ids are hexadecimal digits (0-9, a-f), as `sweep plan --list` shows them",
        prefix));
  constexpr i64 kShown = 5;
  Transaction work(*db_, Transaction::kRead);
  std::vector<std::string> found;
  {
    auto rows = work.rows(R"(
        SELECT t.id FROM trial t JOIN plan_entry p ON p.trial = t.key AND p.sweep = ?
        WHERE t.id >= ? AND t.id < ?
        ORDER BY t.id LIMIT ?)",
                          sweep, prefix, std::string(prefix) + "g", kShown + 1);
    while (rows.next()) found.push_back(rows.get<std::string>(0));
  }
  SWEEP_TRY(work.commit());
  if (found.empty())
    return fail(fmt::format("no trial of this sweep has an id that begins with '{}'", prefix));
  if (found.size() == 1) return found.front();
  std::string list;
  for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), kShown); ++i)
    list += (i ? ", " : "") + found[i];
  return fail(fmt::format("several trials have ids that begin with '{}': {}{}; give more digits", prefix,
                          list, found.size() > kShown ? ", ..." : ""));
}

Expected<Table> SqliteStore::events(i64 sweep, i64 limit) {
  Transaction work(*db_, Transaction::kRead);
  Table out;
  out.columns = {"time", "kind", "text"};
  {
    auto rows = work.rows(R"(
        SELECT strftime('%Y-%m-%dT%H:%M:%SZ', unix_ns / 1000000000, 'unixepoch'), kind, text
        FROM event WHERE sweep = ?
        ORDER BY unix_ns DESC, id DESC LIMIT ?)",
                          sweep, limit);
    while (rows.next())
      out.rows.push_back({rows.get<std::string>(0), rows.get<std::string>(1), rows.get<std::string>(2)});
  }
  std::ranges::reverse(out.rows);
  return work.commit(std::move(out));
}

}  // namespace sweep::store
