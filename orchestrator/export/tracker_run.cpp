#include "orchestrator/export/tracker_run.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <sstream>

#include "orchestrator/export/results.h"
#include "orchestrator/export/text.h"
#include "schema/codec.h"
#include "schema/columns.h"
#include "schema/labels.h"
#include "schema/rehearsal.h"

namespace sweep::exports {
namespace {

// nullopt: not measured.
std::optional<Json> json_value(const Value& value, bool flag) {
  if (const auto* v = std::get_if<i64>(&value)) return flag ? Json(*v != 0) : Json(*v);
  if (const auto* v = std::get_if<double>(&value))
    return std::isfinite(*v) ? std::optional(Json(*v)) : std::nullopt;
  if (const auto* v = std::get_if<std::string>(&value))
    return v->empty() ? std::nullopt : std::optional(Json(valid_utf8(*v)));
  return std::nullopt;
}

void add_columns(const ResultRow& row, TrackerRun& run) {
  run.params.emplace_back("trial", row.trial_id);
  run.params.emplace_back("sweep", run.sweep);
  if (run.rehearsed) run.params.emplace_back("rehearsed", true);
  for (const Column& c : columns()) {
    if (c.role == Role::kIdentity) continue;
    if (auto value = json_value(c.get(row), c.type == "flag"))
      (c.role == Role::kAxis ? run.params : run.metrics).emplace_back(c.key, std::move(*value));
  }
  const auto labels = label_members(row.trial.labels);
  for (const auto& [key, value] : labels.items())
    if (is_label_name(key)) run.params.emplace_back("label/" + valid_utf8(key), Json(value));
}

void add_history(std::vector<StepValues> steps, TrackerRun& run) {
  const i64 total_ns = std::accumulate(steps.begin(), steps.end(), i64{0},
                                       [](i64 sum, const StepValues& s) { return sum + s.step_ns; });
  i64 done_ns = 0;
  for (StepValues& s : steps) {
    done_ns += s.step_ns;
    HistoryPoint point;
    point.step = static_cast<i64>(run.history.size());
    point.runtime_s = static_cast<double>(done_ns) / 1e9;
    point.unix_s = run.ended_unix_s - static_cast<double>(total_ns - done_ns) / 1e9;
    point.values = std::move(s.values);
    run.history.push_back(std::move(point));
  }
  run.begun_unix_s = run.ended_unix_s - static_cast<double>(total_ns) / 1e9;
}

}  // namespace

bool is_exported(const ResultRow& row) {
  return row.state == State::kFinished && row.outcome != Outcome::kPruned;
}

TrackerRun tracker_run(const ResultRow& row, std::vector<StepValues> steps, const std::string& name,
                       const std::string& question) {
  TrackerRun run;
  const i64 finished = row.finished_unix_ns.value_or(0);
  run.id = name_hash(fmt::format("run\n{}\n{}\n{}", row.sweep, row.trial_id, finished));
  run.name = cut_to(valid_utf8(name), 120);
  run.sweep = valid_utf8(row.sweep);
  run.question = valid_utf8(question);
  run.rehearsed = is_rehearsal(row.sweep);
  run.trial = row.trial_id;
  run.outcome = row.outcome;
  run.reason = valid_utf8(row.reason);
  run.ended_unix_s = static_cast<double>(finished / 1'000'000) / 1e3;
  add_columns(row, run);
  add_history(std::move(steps), run);
  std::ostringstream record;
  if (write_json_lines(record, rows_of(std::span(&row, 1)))) run.record = record.str();
  return run;
}

std::string cut_to(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text;
}

}  // namespace sweep::exports
