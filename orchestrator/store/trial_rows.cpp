#include "orchestrator/store/trial_rows.h"

#include <nlohmann/json.hpp>

#include "schema/codec.h"

namespace sweep::store {
namespace {

constexpr std::string_view kUpsertEntry =
    "INSERT INTO plan_entry(sweep, trial, model, labels, admitted, verdict, rule, reason, predicted_bytes, "
    "predicted_step_ms, predicted_seconds, place, source, state, outcome) VALUES "
    "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, CASE WHEN ?5 THEN State::kPending ELSE State::kFinished END, "
    "CASE WHEN ?5 THEN NULL ELSE ?6 END) "
    "ON CONFLICT(sweep, trial) DO UPDATE SET model = ?3, labels = ?4, admitted = ?5, verdict = ?6, rule = "
    "?7, "
    "reason = ?8, predicted_bytes = ?9, predicted_step_ms = ?10, predicted_seconds = ?11, place = ?12, "
    "source = ?13 "
    "WHERE model <> ?3 OR labels <> ?4 OR admitted <> ?5 OR verdict <> ?6 OR rule <> ?7 OR reason <> ?8 OR "
    "predicted_bytes IS NOT ?9 OR predicted_step_ms IS NOT ?10 OR predicted_seconds IS NOT ?11 OR place <> "
    "?12 OR "
    "source <> ?13";

}  // namespace

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

i64 ensure_trial(Transaction& work, const PlanEntry& entry) {
  if (Statement* insert = work.ready(insert_trial_sql())) {
    const std::string spec = dump(to_json(entry.trial.spec));
    insert->put(1, entry.id), insert->put(2, spec);
    put_axes(*insert, 3, entry.trial);
    work.finish(*insert);
  }
  return work.one<i64>("SELECT key FROM trial WHERE id = ?", entry.id).value_or(0);
}

void write_entry(Transaction& work, i64 sweep, i64 trial, const PlanEntry& e) {
  work.run(kUpsertEntry, sweep, trial, e.trial.model, e.trial.labels, e.admitted, e.verdict, e.rule, e.reason,
           e.predicted.bytes, e.predicted.step_ms, e.predicted.seconds, e.order, e.source);
}

}  // namespace sweep::store
