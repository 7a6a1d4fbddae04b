#include "orchestrator/answers/tables/plan_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/fail.h"
#include "base/text.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/json_values.h"
#include "orchestrator/answers/tables/tables.h"
#include "orchestrator/plan/memory_pruning.h"
#include "orchestrator/plan/rules.h"
#include "orchestrator/predict/memory.h"
#include "orchestrator/store/store.h"
#include "schema/codec.h"
#include "schema/outcome.h"
#include "schema/rehearsal.h"
#include "schema/result_row.h"

namespace sweep::answers {
namespace {

std::optional<i64> bytes_of(double value) {
  return std::isnan(value) ? std::nullopt : std::optional(static_cast<i64>(value));
}

Value value_of(const std::optional<i64>& bytes) {
  return bytes ? Value{*bytes} : Value{};
}

Expected<void> add_results(store::Store& store, i64 sweep, RehearsedTrials& out) {
  const auto columns =
      store.result_columns(sweep, {{"outcome"}, {"peak_allocated_bytes", "peak_reserved_bytes"}});
  if (!columns) return tl::unexpected(columns.error());
  const auto& outcomes = columns->coded.at("outcome");
  const auto& allocated = columns->numbers.at("peak_allocated_bytes");
  const auto& reserved = columns->numbers.at("peak_reserved_bytes");
  for (std::size_t i = 0; i < columns->size(); ++i) {
    const auto* word = std::get_if<std::string>(&outcomes.at(i));
    const auto outcome = word ? outcome_from(*word) : std::nullopt;
    if (!outcome || *outcome == Outcome::kPruned) continue;
    out.insert_or_assign(std::string(columns->trial[i]),
                         Rehearsed{*outcome, bytes_of(allocated[i]), bytes_of(reserved[i])});
  }
  return {};
}

// Adds columns; `table` has the ids under `trial`.
void add_rehearsed(Table& table, const RehearsedTrials& rehearsed) {
  const auto ids =
      static_cast<std::size_t>(std::ranges::find(table.columns, "trial") - table.columns.begin());
  for (const char* name : {"rehearsed_outcome", "rehearsed_allocated_bytes", "rehearsed_reserved_bytes"})
    table.columns.emplace_back(name);
  for (auto& row : table.rows) {
    const auto found = rehearsed.find(std::get<std::string>(row[ids]));
    const bool there = found != rehearsed.end();
    row.push_back(there ? Value{std::string(to_string(found->second.outcome))} : Value{});
    row.push_back(there ? value_of(found->second.allocated_bytes) : Value{});
    row.push_back(there ? value_of(found->second.reserved_bytes) : Value{});
  }
}

ResultRow as_row(const PlanEntry& entry) {
  ResultRow row;
  row.trial_id = entry.id;
  row.trial = entry.trial;
  row.state = entry.admitted ? State::kPending : State::kFinished;
  row.outcome = entry.verdict;
  row.reason = entry.reason;
  row.metrics.predicted_bytes = entry.predicted.bytes;
  row.metrics.predicted_ms = entry.predicted.step_ms;
  return row;
}

bool has_memory(const PlanEntry& e) {
  return e.predicted.bytes && plan::has_model(e.trial);
}

std::optional<double> memory_limit_of(const Trial& t) {
  const shape::Hardware* hardware = shape::known_hardware(t.hardware);
  return hardware ? predict::memory_budget(t, *hardware) : std::nullopt;
}

nlohmann::json memory_json(const PlanEntry& e) {
  if (!has_memory(e) || e.trial.workload != Workload::kStep) return nullptr;
  const auto estimate = predict::estimate_memory(e.trial);
  const auto limit = memory_limit_of(e.trial);
  nlohmann::json parts = nlohmann::json::object();
  for (std::size_t i = 0; i < shape::kMemoryParts; ++i)
    parts[shape::kMemoryPartNames[i]] = static_cast<i64>(estimate.parts().of[i]);
  return {{"fullest_stage", estimate.fullest},
          {"limit_bytes", limit ? nlohmann::json(static_cast<i64>(*limit)) : nullptr},
          {"parts", std::move(parts)}};
}

}  // namespace

Expected<RehearsedTrials> rehearsed_in(const std::string& db) {
  RehearsedTrials out;
  SWEEP_GET(const auto file, store::read_sweeps(db));
  for (const auto& sweep : file.sweeps) {
    if (!is_rehearsal(sweep.name)) continue;
    if (auto added = add_results(*file.store, sweep.id, out); !added) return tl::unexpected(added.error());
  }
  return out;
}

Expected<Table> plan_table(const PlanView& view) {
  std::vector<ResultRow> rows;
  for (const auto& entry : view.entries) rows.push_back(as_row(entry));
  TableOptions options;
  options.metrics = {"predicted_ms", "predicted_bytes"};
  auto table = select(rows, options);
  if (table && !view.rehearsed.empty()) add_rehearsed(*table, view.rehearsed);
  return table;
}

nlohmann::json plan_entry_json(const PlanView& view, const PlanEntry& entry) {
  nlohmann::json out = {{"sweep", view.sweep},
                        {"id", entry.id},
                        {"trial", to_json(entry.trial)},
                        {"admitted", entry.admitted},
                        {"source", entry.source},
                        {"order", entry.order},
                        {"predicted_bytes", or_null(entry.predicted.bytes)},
                        {"predicted_ms", or_null(entry.predicted.step_ms)},
                        {"predicted_seconds", or_null(entry.predicted.seconds)},
                        {"predicted_memory", memory_json(entry)}};
  if (!entry.admitted)
    out.update({{"outcome", to_string(entry.verdict)}, {"rule", entry.rule}, {"reason", entry.reason}});
  const auto found = view.rehearsed.find(entry.id);
  const bool there = found != view.rehearsed.end();
  const Rehearsed known = there ? found->second : Rehearsed();
  out["rehearsed_outcome"] = there ? nlohmann::json(to_string(known.outcome)) : nullptr;
  out["rehearsed_allocated_bytes"] = or_null(known.allocated_bytes);
  out["rehearsed_reserved_bytes"] = or_null(known.reserved_bytes);
  return out;
}

std::string pruned_text(const PlanView& view) {
  std::map<std::string, std::pair<i64, std::string>> rules;
  for (const auto& entry : view.entries) {
    if (entry.admitted) continue;
    auto& [count, example] = rules[entry.rule];
    if (++count == 1) example = entry.reason;
  }
  std::string out;
  for (const auto& [rule, seen] : rules)
    out += fmt::format("  {:>6}  {:<14} e.g. {}\n", seen.first, rule, safe_text(seen.second));
  return out;
}

std::string rehearsed_summary(const PlanView& view) {
  std::map<Outcome, i64> outcomes;
  i64 admitted = 0, count = 0;
  for (const auto& entry : view.entries) {
    if (!entry.admitted) continue;
    ++admitted;
    if (const auto found = view.rehearsed.find(entry.id); found != view.rehearsed.end())
      ++outcomes[found->second.outcome], ++count;
  }
  if (count == 0) return {};
  std::string parts;
  for (const auto& [outcome, trials] : outcomes)
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", trials, to_string(outcome));
  return fmt::format("rehearsed on phantom GPUs: {} of {} admitted trials ({}); --list shows their bytes\n",
                     count, admitted, parts);
}

std::string plan_total(const PlanView& view, double gpu_hours, std::optional<double> usd) {
  double seconds = 0;
  i64 known = 0, unknown = 0;
  for (const auto& entry : view.entries) {
    if (!entry.admitted) continue;
    ++(entry.predicted.seconds ? known : unknown);
    seconds += entry.predicted.seconds.value_or(0);
  }
  if (known == 0 && unknown > 0)
    return "estimated total: not known before the first result; nothing predicts this program's time\n";
  return fmt::format(
      "estimated total, run serially: {} and {} GPU-hours{}{}\n", rough_duration(seconds),
      rough_hours(gpu_hours), usd ? fmt::format(", {:.2f} USD", *usd) : "",
      unknown > 0 ? fmt::format("; {} trials more, whose time nothing predicts", unknown) : "");
}

std::string memory_summary(const std::vector<PlanEntry>& entries, double margin, std::size_t near,
                           std::size_t measured) {
  const bool limited =
      std::ranges::any_of(entries, [](const PlanEntry& e) { return plan::share_of_limit(e).has_value(); });
  if (!limited) return {};
  std::string how;
  if (near > 0 && measured >= near)
    how = " (measured by dry runs)";
  else if (near > 0)
    how = fmt::format(" ({}--dry-run measures them)",
                      measured > 0 ? fmt::format("{} measured by dry runs; ", measured) : "");
  const auto free = std::ranges::count_if(
      entries, [](const PlanEntry& e) { return e.admitted && plan::changes_allocator(e); });
  if (free > 0) how += fmt::format("; {} change the allocator by env, whose pieces are not modelled", free);
  return fmt::format(
      "memory: model of the built-in step; more than {:g} % over the limit is pruned; close to it: {}{}\n",
      100 * margin, near, how);
}

Expected<std::string> memory_text(const std::vector<PlanEntry>& entries, const std::string& id,
                                  std::size_t width) {
  const auto is_meant = [&](const PlanEntry& e) { return e.id.starts_with(id); };
  const auto entry = std::ranges::find_if(entries, is_meant);
  if (entry == entries.end()) return fail("no trial of the plan begins with '{}'", id);
  if (std::find_if(entry + 1, entries.end(), is_meant) != entries.end())
    return fail("several trials begin with '{}'; give more of the id", id);
  if (!has_memory(*entry)) return fail("trial {} has no prediction: {}", entry->id, safe_text(entry->reason));
  const auto estimate = predict::estimate_memory(entry->trial, shape::Ranks::kAll);
  Table table{{"stage"}, {}};
  for (const char* part : shape::kMemoryPartNames) table.columns.emplace_back(part);
  table.columns.emplace_back("total");
  for (std::size_t stage = 0; stage < estimate.of_ranks.size(); ++stage) {
    const auto& parts = estimate.of_ranks[stage];
    std::vector<Value> row{std::to_string(stage) + (stage == estimate.fullest ? " (fullest)" : "")};
    for (const double bytes : parts.of) row.emplace_back(human_bytes(bytes));
    row.emplace_back(human_bytes(parts.total()));
    table.rows.push_back(std::move(row));
  }
  const auto limit = memory_limit_of(entry->trial);
  return fmt::format(
             "trial {}: memory of a rank of each pipeline stage at its fullest moment, profile sweep{}\n",
             entry->id, limit ? ", limit " + human_bytes(*limit) : "") +
         to_text(table, width);
}

}  // namespace sweep::answers
