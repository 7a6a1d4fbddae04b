// Read-only queries: progress, results, one trial, events.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "orchestrator/store/opening.h"
#include "orchestrator/store/rows.h"
#include "orchestrator/store/store_file.h"
#include "schema/codec.h"

namespace sweep::store {

namespace {

Progress count_progress(Transaction& work, i64 sweep) {
  Progress out;
  out.ran_unsupported = work.one<i64>(R"(
      SELECT count(*) FROM plan_entry
      WHERE sweep = ? AND state = State::kFinished AND outcome = Outcome::kUnsupported AND final_attempt IS NOT NULL)",
                                      sweep)
                            .value_or(0);
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

// Beyond its deadline no attempt ends well. `column`: the deadlines of its request; those that this version cannot read
// bound nothing.
bool clock_jumped(const Rows& rows, int column, double took_s) {
  constexpr double kAroundS = 60;
  const auto deadlines = parse_json(rows.text(column)).and_then(from_json<Deadlines>);
  return deadlines && took_s > deadlines->total_s + kAroundS;
}

}  // namespace

i64 Progress::ended(Outcome outcome) const {
  const auto found = std::ranges::find(by_outcome, outcome, &std::pair<Outcome, i64>::first);
  return found == by_outcome.end() ? 0 : found->second;
}

i64 Progress::answered() const {
  i64 out = 0;
  for (const auto& [outcome, count] : by_outcome) out += is_answer(outcome) ? count : 0;
  return out;
}

Expected<Workload> Answers::workload(i64 sweep) {
  constexpr i64 kLast = 200;
  constexpr double kNs = 1e-9;
  Transaction work(*file_.db, Transaction::kRead);
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
    // Trials and requests are read of the last attempts alone, not of all that the inner select goes through.
    auto rows = work.rows(R"(
        SELECT p.predicted_seconds, a.started_unix_ns, a.ended_unix_ns, t.nodes, a.allocation,
               json_extract(a.request, '$.deadlines')
        FROM (SELECT a.id AS attempt FROM plan_entry p
              JOIN attempt a ON a.entry = p.key
              JOIN result r ON r.attempt = a.id
              WHERE p.sweep = ? AND r.outcome = Outcome::kOk
                AND a.started_unix_ns > 0 AND a.ended_unix_ns > a.started_unix_ns
              ORDER BY a.id DESC LIMIT ?) last
        JOIN attempt a ON a.id = last.attempt
        JOIN plan_entry p ON p.key = a.entry
        JOIN trial t ON t.key = p.trial
        ORDER BY a.id DESC)",
                          sweep, kLast);
    while (rows.next()) {
      const i64 started = rows.get<i64>(1), ended = rows.get<i64>(2);
      if (clock_jumped(rows, 5, kNs * static_cast<double>(ended - started))) continue;
      out.done.push_back({rows.null(0) ? std::nullopt : std::optional(rows.get<double>(0)),
                          kNs * static_cast<double>(started), kNs * static_cast<double>(ended),
                          rows.get<i64>(3), rows.get<std::string>(4)});
    }
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

Expected<void> Answers::look_again() {
  const auto path = file_.db->path();
  const auto now = file_at(path);
  const auto& before = file_.at_path;
  std::error_code ignored;
  const bool same = now.id == before.id;
  if (same && !is_read_as_it_stood(*file_.db)) return {};
  if (same && now.bytes == before.bytes && now.written_ns == before.written_ns &&
      !std::filesystem::exists(file_.db->file().string() + "-wal", ignored))
    return {};
  SWEEP_GET(auto db, open_database(path, Mode::kReadOnly, file_.dependencies, file_.network));
  Transaction work(*db, Transaction::kRead);
  auto selects = selects_for(work);
  SWEEP_TRY(work.commit());
  file_.db = std::move(db), file_.selects = std::move(selects);
  file_.query_db.reset(), file_.counted.reset();
  file_.at_path = now;
  ++file_.opened_again;
  return {};
}

Expected<i64> Answers::version() {
  Transaction work(*file_.db, Transaction::kRead);
  const i64 others = work.one<i64>("PRAGMA data_version").value_or(0);
  return work.commit((file_.opened_again << 48) + (others << 32) +
                     sqlite3_total_changes64(file_.db->handle()));
}

Expected<Progress> Answers::progress(i64 sweep) {
  Transaction work(*file_.db, Transaction::kRead);
  const i64 others = work.one<i64>("PRAGMA data_version").value_or(0);
  const i64 own = sqlite3_total_changes64(file_.db->handle());
  if (work.failed() || !file_.counted || file_.counted->sweep != sweep || file_.counted->others != others ||
      file_.counted->own != own)
    file_.counted = CountedProgress{sweep, others, own, count_progress(work, sweep)};
  if (work.failed()) file_.counted.reset();
  SWEEP_TRY(work.commit());
  return file_.counted->progress;
}

Expected<std::optional<std::string>> Answers::last_result(const std::string& sweep) {
  Transaction work(*file_.db, Transaction::kRead);
  auto at = work.one<std::string>(R"(
      SELECT finished_at FROM results WHERE sweep = ? AND state <> 'retired' AND finished_at IS NOT NULL
      ORDER BY finished_at DESC LIMIT 1)",
                                  sweep);
  return work.commit(std::move(at));
}

Expected<std::vector<ResultRow>> Answers::results(i64 sweep) {
  Transaction work(*file_.db, Transaction::kRead);
  auto out = results_of_sweep(work, file_.selects, sweep);
  return work.commit(std::move(out));
}

Expected<std::optional<ResultRow>> Answers::result(i64 sweep, const std::string& trial_id) {
  Transaction work(*file_.db, Transaction::kRead);
  const auto entry = work.one<i64>(
      "SELECT p.key FROM plan_entry p JOIN trial t ON t.key = p.trial WHERE p.sweep = ? AND t.id = ?", sweep,
      trial_id);
  std::optional<ResultRow> out;
  for (auto& row : result_rows(work, file_.selects, "p.key = ?", {entry.value_or(0)})) out = std::move(row);
  return work.commit(std::move(out));
}

Expected<std::optional<Result>> Answers::result_of(i64 attempt) {
  Transaction work(*file_.db, Transaction::kRead);
  std::optional<Result> out;
  {
    auto rows =
        work.rows(fmt::format(R"(
        SELECT t.id, {}, {}
        FROM result r
        JOIN attempt a ON a.id = r.attempt
        JOIN plan_entry p ON p.key = a.entry
        JOIN trial t ON t.key = p.trial
        WHERE r.attempt = ?)",
                              select_list(file_.selects.columns, "result", "r", stored_fields<Result>()),
                              file_.selects.metrics),
                  attempt);
    if (rows.next()) {
      Result& result = out.emplace();
      rows.read(0, result.trial_id);
      read_metrics(rows, read_fields(rows, 1, result), result.metrics);
    }
  }
  return work.commit(std::move(out));
}

Expected<std::optional<i64>> Answers::final_attempt(i64 sweep, const std::string& trial_id) {
  Transaction work(*file_.db, Transaction::kRead);
  auto out = work.one<i64>(R"(
      SELECT p.final_attempt FROM plan_entry p JOIN trial t ON t.key = p.trial
      WHERE p.sweep = ? AND t.id = ?)",
                           sweep, trial_id);
  return work.commit(out);
}

Expected<std::string> Answers::sweep_of(i64 attempt) {
  Transaction work(*file_.db, Transaction::kRead);
  auto name = work.one<std::string>(R"(
      SELECT s.name FROM attempt a JOIN plan_entry p ON p.key = a.entry JOIN sweep s ON s.id = p.sweep
      WHERE a.id = ?)",
                                    attempt);
  return work.commit(std::move(name).value_or(""));
}

Expected<std::string> Answers::find_trial(i64 sweep, std::string_view prefix) {
  const bool hex =
      std::ranges::all_of(prefix, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (prefix.empty() || !hex)
    return fail(
        ErrorKind::kInvalidValue, prefix,
        "'{}' is no trial id: ids are hexadecimal digits (0-9, a-f), as `sweep plan --list` shows them",
        prefix);
  constexpr i64 kShown = 5;
  Transaction work(*file_.db, Transaction::kRead);
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
    return fail(ErrorKind::kNotFound, prefix, "no trial of this sweep has an id that begins with '{}'",
                prefix);
  if (found.size() == 1) return found.front();
  std::string list;
  for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), kShown); ++i)
    list += (i ? ", " : "") + found[i];
  return fail(ErrorKind::kInvalidValue, prefix,
              "several trials have ids that begin with '{}': {}{}; give more digits", prefix, list,
              found.size() > kShown ? ", ..." : "");
}

Expected<std::vector<SweepEvent>> SweepBook::events(i64 sweep, i64 limit) {
  Transaction work(*file_.db, Transaction::kRead);
  std::vector<SweepEvent> out;
  {
    auto rows = work.rows(R"(
        SELECT strftime('%Y-%m-%dT%H:%M:%SZ', unix_ns / 1000000000, 'unixepoch'), kind, text, attempt
        FROM event WHERE sweep = ?
        ORDER BY unix_ns DESC, id DESC LIMIT ?)",
                          sweep, limit);
    while (rows.next()) {
      auto word = rows.get<std::string>(1);
      const auto kind = event_kind_from(word);
      out.push_back({rows.get<std::string>(0), kind, std::move(word), rows.get<std::string>(2),
                     rows.get<std::optional<i64>>(3)});
    }
  }
  std::ranges::reverse(out);
  return work.commit(std::move(out));
}

}  // namespace sweep::store
