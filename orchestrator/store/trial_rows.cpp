#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "orchestrator/store/rows.h"
#include "orchestrator/store/stored_rows.h"
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

std::string usual_dimensions() {
  nlohmann::json out = to_json(ModelSpec{});
  std::erase_if(out.get_ref<nlohmann::json::object_t&>(),
                [](const auto& one) { return one.second.is_null(); });
  return dump(out);
}

std::string plan_entry_select(const Selects& selects) {
  std::string fields;
  for (const auto& field : stored_fields<PlanEntry>()) fields += "p." + field.column + ", ";
  return fmt::format("SELECT p.key, t.id, t.spec, {}{} FROM plan_entry p JOIN trial t ON t.key = p.trial",
                     fields, selects.axes);
}

PlanEntry read_plan_entry(const Rows& rows, SpecCache& specs) {
  PlanEntry entry;
  rows.read(1, entry.id);
  entry.trial.spec = spec_of(specs, rows.text(2));
  read_axes(rows, read_fields(rows, 3, entry), entry.trial);
  return entry;
}

namespace {

// People's own SQL reads these of any model. The others are left out where they are at their default: each trial has the
// text, and it would be most of a database.
constexpr const char* kAlwaysStored[] = {"attention_bias", "experts",         "experts_per_token",
                                         "family",         "head_dim",        "heads",
                                         "hidden_size",    "kv_heads",        "intermediate_size",
                                         "layers",         "linear_bias",     "max_positions",
                                         "norm_eps",       "rmsnorm",         "rope",
                                         "rope_scaling",   "router_aux_coef", "rope_theta",
                                         "sliding_window", "swiglu",          "tie_embeddings",
                                         "vocab_size"};

std::string stored_text(const ModelSpec& spec) {
  nlohmann::json out = changed_dimensions(spec);
  const nlohmann::json all = to_json(spec);
  for (const char* key : kAlwaysStored) out[key] = all.at(key);
  return dump(out);
}

// Keeps the last one: neighbours in a sweep mostly share a model.
const std::string& json_of(const ModelSpec& spec) {
  thread_local ModelSpec last;
  thread_local std::string of_last = stored_text(last);
  if (spec != last) of_last = stored_text(spec), last = spec;
  return of_last;
}

}  // namespace

i64 ensure_trial(Transaction& work, const PlanEntry& entry) {
  if (Statement* insert = work.ready(insert_trial_sql())) {
    insert->put(1, entry.id);
    insert->put(2, json_of(entry.trial.spec));
    put_axes(*insert, 3, entry.trial);
    work.finish(*insert);
  }
  return work.one<i64>("SELECT key FROM trial WHERE id = ?", entry.id).value_or(0);
}

// A trial that is new in its sweep gets the state and the outcome of the plan's decision; those of one that
// is known are for settle() to say.
void write_entry(Transaction& work, i64 sweep, i64 trial, const PlanEntry& entry) {
  static const auto& fields = stored_fields<PlanEntry>();
  static const std::string sql =
      fmt::format("{} ON CONFLICT(sweep, trial) DO UPDATE SET {} WHERE {}",
                  insert_statement("INSERT", "plan_entry", {"sweep", "trial", "state", "outcome"}, fields),
                  assignments(fields), differences("plan_entry", fields));
  if (Statement* upsert = work.ready(sql)) {
    upsert->put(1, sweep);
    upsert->put(2, trial);
    upsert->put(3, entry.admitted ? State::kPending : State::kFinished);
    upsert->put(4, entry.admitted ? std::nullopt : std::optional(entry.verdict));
    put_fields(*upsert, 5, entry);
    work.finish(*upsert);
  }
}

}  // namespace sweep::store
