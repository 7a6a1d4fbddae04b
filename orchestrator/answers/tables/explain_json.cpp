#include "orchestrator/answers/json_values.h"
#include "orchestrator/answers/tables/explain.h"
#include "schema/codec.h"
#include "schema/columns.h"
#include "schema/rehearsal.h"

namespace sweep::answers {
namespace {

using nlohmann::json;

json metrics_json(const Metrics& metrics) {
  json out = json::object();
  for_each_metric(metrics, [&](const FieldInfo& info, const auto& member) {
    out[std::string(info.key)] = or_null(member);
  });
  return out;
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

json explain_json(const ExplainView& view, const std::string& sweep) {
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
          {"nodes", node_times_json(view.nodes)},
          {"slower_kind", text_or_null(slower_kind(entry.trial, view.nodes))},
          {"events", view.events}};
}

}  // namespace sweep::answers
