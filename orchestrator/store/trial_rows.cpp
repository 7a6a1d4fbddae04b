#include "orchestrator/store/trial_rows.h"

#include <nlohmann/json.hpp>

#include "schema/codec.h"

namespace sweep::store {

const ModelSpec& spec_of(SpecCache& cache, std::string_view json) {
  const auto it = cache.find(json);
  if (it != cache.end()) return it->second;
  ModelSpec spec;
  if (const auto parsed = parse_json(json))
    if (auto read = from_json<ModelSpec>(*parsed)) spec = std::move(*read);
  return cache.emplace(std::string(json), std::move(spec)).first->second;
}

std::string plan_entry_select(const Selects& selects) {
  return "SELECT p.key, t.id, t.spec, p.model, p.labels, p.admitted, p.verdict, p.rule, p.reason, "
         "p.predicted_bytes, "
         "p.predicted_step_ms, p.predicted_seconds, p.place, p.source, " +
         selects.axes + " FROM plan_entry p JOIN trial t ON t.key = p.trial";
}

PlanEntry read_plan_entry(const Rows& rows, SpecCache& specs) {
  PlanEntry entry;
  rows.read(1, entry.id);
  entry.trial.spec = spec_of(specs, rows.text(2));
  rows.read(3, entry.trial.model), rows.read(4, entry.trial.labels), rows.read(5, entry.admitted);
  rows.read(6, entry.verdict), rows.read(7, entry.rule), rows.read(8, entry.reason);
  rows.read(9, entry.predicted.bytes), rows.read(10, entry.predicted.step_ms);
  rows.read(11, entry.predicted.seconds), rows.read(12, entry.order), rows.read(13, entry.source);
  read_axes(rows, 14, entry.trial);
  return entry;
}

}  // namespace sweep::store
