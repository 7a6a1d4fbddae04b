#include "orchestrator/answers/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/time.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/json_values.h"
#include "orchestrator/answers/tables/shortcuts.h"
#include "schema/codec.h"
#include "schema/rehearsal.h"

namespace sweep::answers {
namespace {

constexpr std::size_t kUnderWay = 4, kHosts = 4;

// "a0001-0f3c local, 2 nodes (n1, n2), 12 results"
std::string held_line(const HeldAllocation& held) {
  std::string names;
  for (std::size_t i = 0; i < std::min(held.hosts.size(), kHosts); ++i)
    names += (i ? ", " : "") + held.hosts[i];
  if (held.hosts.size() > kHosts) names += ", ...";
  const auto nodes = static_cast<i64>(held.hosts.size());
  return fmt::format("{} {}{}, {}", held.row.id, held.row.launcher,
                     nodes ? fmt::format(", {} ({})", counted(nodes, "node"), names) : ", not started yet",
                     counted(held.results, "result"));
}

Expected<HeldAllocation> held_allocation(store::Store& store, store::AllocationRow row) {
  SWEEP_GET(const auto nodes, store.nodes_of(row.id));
  SWEEP_GET(const auto results, store.results_in(row.id));
  SWEEP_GET(auto attempts, store.unfinished_attempts(row.id));
  std::erase_if(attempts, [](const auto& attempt) { return attempt.state != State::kRunning; });
  HeldAllocation out{std::move(row), {}, results, std::move(attempts)};
  for (const auto& node : nodes) out.hosts.push_back(node.host);
  return out;
}

nlohmann::json outcomes_json(const store::Progress& counts) {
  auto out = nlohmann::json::object();
  for (int i = 0; i <= static_cast<int>(Outcome::kFailedUnknown); ++i)
    out[std::string(to_string(static_cast<Outcome>(i)))] = 0;
  for (const auto& [outcome, count] : counts.by_outcome) out[std::string(to_string(outcome))] = count;
  return out;
}

// nullopt: there is none.
std::optional<double> value_of_best(const Progress& of) {
  const Column* column = of.best ? find_column(of.best_by) : nullptr;
  return column ? number(column->get(*of.best)) : std::nullopt;
}

nlohmann::json best_so_far_json(const Progress& of) {
  const auto value = value_of_best(of);
  if (!value) return nullptr;
  return {{"trial", of.best->trial_id},
          {"metric", of.best_by},
          {"value", *value},
          {"configuration", to_json(of.best->trial)}};
}

}  // namespace

Expected<RunDetails> run_details(store::Store& store, i64 sweep, const GpuHours& gpu_hours, i64 events) {
  RunDetails out{{}, gpu_hours, {}, {}, {}};
  SWEEP_GET(auto open, store.open_allocations(sweep));
  for (auto& row : open) {
    SWEEP_GET(auto held, held_allocation(store, std::move(row)));
    out.held.push_back(std::move(held));
  }
  SWEEP_GET(auto shortcuts, store.shortcuts(sweep));
  out.shortcuts = std::move(shortcuts);
  SWEEP_GET(auto excluded, store.excluded_hosts(sweep));
  out.excluded = std::move(excluded);
  SWEEP_GET(auto seen, store.events(sweep, events));
  out.events = std::move(seen);
  return out;
}

Expected<std::vector<Field>> varying_axes(store::Store& store, i64 sweep) {
  SWEEP_GET(const auto entries, store.plan(sweep));
  std::vector<ResultRow> rows(entries.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].trial = entries[i].trial;
  return varying(rows);
}

StatusView status_view(const Progress& of, std::span<const Field> shown) {
  StatusView view;
  view.sweep = of.sweep.name;
  view.total = of.counts.total, view.pending = of.counts.pending, view.running = of.counts.running;
  view.by_outcome = of.counts.by_outcome;
  view.ran_unsupported = of.counts.ran_unsupported;
  view.elapsed_s = of.elapsed_s, view.left_s = of.left_s;
  if (const auto value = value_of_best(of))
    view.best = StatusView::Best{of.best_by, *value, setting_text(*of.best, shown), of.best->trial_id};
  return view;
}

void add_holder(StatusView& view, const std::string& run_by) {
  if (!run_by.empty()) view.now.push_back(run_by);
  if (run_by.empty() && view.running > 0)
    view.now.push_back("not running: the last run died unexpectedly; `sweep resume` continues it");
}

void add_details(StatusView& view, const RunDetails& details, std::span<const Field> shown) {
  for (const auto& each : details.held) {
    view.held.push_back(held_line(each));
    for (const auto& attempt : each.running) {
      if (view.now.size() > kUnderWay) break;
      ResultRow trial;
      trial.trial = attempt.attempt.trial;
      view.now.push_back(fmt::format("{}  {}", attempt.trial_id, setting_text(trial, shown)));
    }
  }
  view.gpu_hours = gpu_hours_text(details.gpu_hours);
  view.shortcuts = shortcut_sentences(details.shortcuts);
  for (const auto& each : details.excluded)
    view.excluded.push_back(
        fmt::format("{}: {}; `sweep resume --readmit {}` takes it back", each.host, each.why, each.host));
  for (const auto& event : details.events)
    view.events.push_back(fmt::format("{}  {}: {}", event.time, event.word, event.text));
}

std::string gpu_hours_text(const GpuHours& of) {
  if (of.held <= 0) return {};
  return fmt::format("{:.3g}{} GPU-hours (on a CPU: slot-hours), all runs together", of.held,
                     of.limit ? fmt::format(" of {:.6g}", *of.limit) : "");
}

nlohmann::json progress_json(const Progress& of, const RunDetails& details,
                             const std::optional<store::LeaseHolder>& run_by) {
  auto allocations = nlohmann::json::array(), running = nlohmann::json::array(),
       excluded = nlohmann::json::array(), events = nlohmann::json::array();
  for (const auto& each : details.held) {
    allocations.push_back({{"id", each.row.id},
                           {"launcher", each.row.launcher},
                           {"hosts", each.hosts},
                           {"results", each.results}});
    for (const auto& attempt : each.running)
      running.push_back({{"attempt", attempt.id}, {"trial", attempt.trial_id}});
  }
  for (const auto& each : details.excluded)
    excluded.push_back({{"host", each.host}, {"launcher", each.launcher}, {"why", each.why}});
  for (const auto& event : details.events)
    events.push_back({{"time", event.time}, {"kind", event.word}, {"text", event.text}});
  nlohmann::json holder = nullptr;
  if (run_by)
    holder = {
        {"host", run_by->host}, {"pid", run_by->pid}, {"heartbeat", utc_time(run_by->heartbeat_unix_ns)}};
  auto document = shortcuts_json(details.shortcuts);
  document.update(
      {{"sweep", of.sweep.name},
       {"rehearsed", is_rehearsal(of.sweep.name)},
       {"question", text_or_null(of.sweep.question)},
       {"grid", text_or_null(of.sweep.grid_path)},
       {"created", utc_time(of.sweep.created_unix_ns)},
       {"total", of.counts.total},
       {"pending", of.counts.pending},
       {"running", of.counts.running},
       {"retired", of.counts.retired},
       {"outcomes", outcomes_json(of.counts)},
       {"predicted_seconds_left", or_null(of.left_s)},
       {"best", best_so_far_json(of)},
       {"run_by", holder},
       {"allocations", allocations},
       {"attempts_running", running},
       {"gpu_hours", {{"held", details.gpu_hours.held}, {"limit", or_null(details.gpu_hours.limit)}}},
       {"excluded_hosts", excluded},
       {"events", events}});
  return document;
}

}  // namespace sweep::answers
