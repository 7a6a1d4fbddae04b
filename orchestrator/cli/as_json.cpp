#include "orchestrator/cli/as_json.h"

#include <algorithm>
#include <ostream>

#include "orchestrator/cli/shortcuts.h"
#include "orchestrator/cli/status_board.h"
#include "orchestrator/run/recovery.h"
#include "schema/codec.h"
#include "schema/columns.h"
#include "schema/rehearsal.h"

namespace sweep::cli {
namespace {

using nlohmann::json;

constexpr i64 kListedEvents = 20;
constexpr double kSecondsInHour = 3600;

template <class T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json text_or_null(const std::string& text) {
  return text.empty() ? json(nullptr) : json(text);
}

json outcomes_json(const store::Progress& counts) {
  json out = json::object();
  for (int i = 0; i <= static_cast<int>(Outcome::kFailedUnknown); ++i)
    out[std::string(to_string(static_cast<Outcome>(i)))] = 0;
  for (const auto& [outcome, count] : counts.by_outcome) out[std::string(to_string(outcome))] = count;
  return out;
}

json metrics_json(const Metrics& metrics) {
  json out = json::object();
  for_each_metric(metrics, [&](const FieldInfo& info, const auto& member) {
    out[std::string(info.key)] = or_null(member);
  });
  return out;
}

json best_json(const std::optional<ResultRow>& best) {
  if (!best || !best->metrics.tokens_per_s_gpu) return nullptr;
  return {{"trial", best->trial_id},
          {"metric", "tokens_per_s_gpu"},
          {"value", *best->metrics.tokens_per_s_gpu},
          {"configuration", to_json(best->trial)}};
}

json event_json(const std::vector<Value>& row) {
  const auto text = [&](std::size_t at) { return std::get<std::string>(row[at]); };
  return {{"time", text(0)}, {"kind", text(1)}, {"text", text(2)}};
}

json result_json(const Result& r) {
  return {{"outcome", to_string(r.outcome)},
          {"oom_kind", r.oom_kind ? json(to_string(*r.oom_kind)) : json(nullptr)},
          {"reason", text_or_null(r.reason)},
          {"rank", or_null(r.rank)},
          {"phase", r.phase ? json(to_string(*r.phase)) : json(nullptr)},
          {"finished", utc_time(r.finished_unix_ns)},
          {"metrics", metrics_json(r.metrics)},
          {"evidence", r.evidence == Evidence() ? json(nullptr) : to_json(r.evidence)}};
}

}  // namespace

void print_document(Io& io, const json& document) {
  io.out << document.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
}

void print_error(Io& io, const Error& error) {
  json told = {{"kind", word_of(error.kind)}, {"message", error.message}};
  if (!error.subject.empty()) told["subject"] = error.subject;
  if (!error.file.empty()) told["file"] = error.file;
  if (error.line > 0) told["line"] = error.line;
  if (error.column > 0) told["column"] = error.column;
  io.err << json{{"error", told}}.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
}

Expected<json> status_json(const Opened& opened, const run::Snapshot& shot) {
  auto& store = *opened.store;
  const auto holder = store.lease(opened.sweep.id);
  if (!holder) return tl::unexpected(holder.error());
  const auto open = allocation_statuses(store, opened.sweep.id);
  if (!open) return tl::unexpected(open.error());
  const auto seconds = run::gpu_seconds_held(store, opened.sweep.id);
  if (!seconds) return tl::unexpected(seconds.error());
  const auto seen = store.events(opened.sweep.id, kListedEvents);
  if (!seen) return tl::unexpected(seen.error());
  auto document = shortcuts_json(store, opened.sweep.id);
  if (!document) return document;
  json run_by = nullptr, allocations = json::array(), running = json::array(), events = json::array();
  if (*holder)
    run_by = {{"host", (*holder)->host},
              {"pid", (*holder)->pid},
              {"heartbeat", utc_time((*holder)->heartbeat_unix_ns)}};
  for (const auto& each : *open) {
    allocations.push_back({{"id", each.row.id},
                           {"launcher", each.row.launcher},
                           {"hosts", each.hosts},
                           {"results", each.results}});
    for (const auto& attempt : each.running)
      running.push_back({{"attempt", attempt.id}, {"trial", attempt.trial_id}});
  }
  for (const auto& row : seen->rows) events.push_back(event_json(row));
  const auto& counts = shot.counts;
  document->update({{"sweep", opened.sweep.name},
                    {"rehearsed", is_rehearsal(opened.sweep.name)},
                    {"question", text_or_null(opened.sweep.question)},
                    {"grid", text_or_null(opened.sweep.grid_path)},
                    {"created", utc_time(opened.sweep.created_unix_ns)},
                    {"total", counts.total},
                    {"pending", counts.pending},
                    {"running", counts.running},
                    {"retired", counts.retired},
                    {"outcomes", outcomes_json(counts)},
                    {"predicted_seconds_left", or_null(shot.seconds_left)},
                    {"best", best_json(shot.best)},
                    {"run_by", run_by},
                    {"allocations", allocations},
                    {"attempts_running", running},
                    {"gpu_hours",
                     {{"held", (seconds->ended + seconds->open) / kSecondsInHour},
                      {"limit", or_null(gpu_hour_limit(opened.sweep))}}},
                    {"events", events}});
  return document;
}

json explain_json(const answers::ExplainView& view, const std::string& sweep) {
  const PlanEntry& entry = view.entry;
  json attempts = json::array();
  for (const auto& each : view.attempts)
    attempts.push_back({{"attempt", each.id},
                        {"state", to_string(each.state)},
                        {"allocation", text_or_null(each.where)},
                        {"final", view.final_attempt == each.id},
                        {"result", each.result ? result_json(*each.result) : json(nullptr)}});
  return {{"sweep", sweep},
          {"rehearsed", is_rehearsal(sweep)},
          {"trial", entry.id},
          {"source", text_or_null(entry.source)},
          {"configuration", to_json(entry.trial)},
          {"admitted", entry.admitted},
          {"order", entry.admitted ? json(entry.order) : json(nullptr)},
          {"outcome", entry.admitted ? json(nullptr) : json(to_string(entry.verdict))},
          {"rule", text_or_null(entry.rule)},
          {"reason", text_or_null(entry.reason)},
          {"predicted",
           {{"bytes", or_null(entry.predicted.bytes)},
            {"step_ms", or_null(entry.predicted.step_ms)},
            {"seconds", or_null(entry.predicted.seconds)}}},
          {"attempts", attempts},
          {"events", view.events}};
}

json doctor_json(const std::vector<driver::Finding>& findings, const driver::SelfTestResults& here) {
  json found = json::array(), strategies = json::array();
  bool healthy = true;
  for (const auto& each : findings) {
    healthy = healthy && each.health != driver::Health::kBad;
    found.push_back({{"what", each.what}, {"health", to_string(each.health)}, {"detail", each.detail}});
  }
  for (const auto& strategy : driver::all_strategies())
    for (std::size_t g = 0; g < driver::kBackends; ++g) {
      const auto own = here.find({std::string(strategy.name), driver::kBackendNames[g]});
      const bool known = own != here.end();
      strategies.push_back({{"strategy", strategy.name},
                            {"backend", driver::kBackendNames[g]},
                            {"tested", text_or_null(std::string(strategy.tested[g]))},
                            {"here", known ? json(own->second.passed ? "passed" : "failed") : json(nullptr)},
                            {"here_date", known ? json(own->second.date) : json(nullptr)}});
    }
  return {{"healthy", healthy}, {"findings", found}, {"strategies", strategies}};
}

}  // namespace sweep::cli
