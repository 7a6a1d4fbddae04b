#include "orchestrator/cli/plan_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/tables/tables.h"
#include "orchestrator/driver/dry_runs.h"
#include "orchestrator/plan/memory_pruning.h"
#include "orchestrator/plan/rules.h"
#include "orchestrator/predict/memory.h"

namespace sweep::cli {
namespace {

Expected<std::map<std::string, double>> asked(Io& io, const std::vector<const PlanEntry*>& near) {
  std::map<std::string, double> bytes;
  if (near.empty()) return bytes;
  io.err << fmt::format("dry runs of {} trials near their memory limit\n", near.size());
  const auto answers = driver::dry_runs(
      near, [&](std::size_t done) { io.err << fmt::format("dry runs: {}/{}\n", done, near.size()); });
  if (!answers) return tl::unexpected<Error>(answers.error());
  for (const auto& [id, run] : *answers) {
    if (run.error.empty())
      bytes[id] = run.bytes;
    else
      io.err << fmt::format("trial {}: {}; its prediction stays\n", id, answers::safe_text(run.error));
  }
  return bytes;
}

bool has_memory(const PlanEntry& e) {
  return e.predicted.bytes && plan::has_model(e.trial);
}

std::optional<double> limit_of(const Trial& t) {
  const shape::Hardware* hardware = shape::known_hardware(t.hardware);
  return hardware ? predict::memory_budget(t, *hardware) : std::nullopt;
}

}  // namespace

Expected<void> prune_memory(Io& io, driver::Planned& planned, bool dry_run) {
  plan::MemoryPruning pruning{planned.grid.limits.memory_margin, {}};
  if (dry_run) {
    auto bytes = asked(io, plan::near_memory_limit(planned.entries, pruning.margin));
    if (!bytes) return tl::unexpected<Error>(bytes.error());
    pruning.dry_runs = std::move(*bytes);
  }
  plan::prune_memory(planned.entries, pruning);
  return {};
}

std::string memory_summary(const driver::Planned& planned, bool dry_run) {
  const double margin = planned.grid.limits.memory_margin;
  const bool limited = std::ranges::any_of(
      planned.entries, [](const PlanEntry& e) { return plan::share_of_limit(e).has_value(); });
  if (!limited) return {};
  const auto near = plan::near_memory_limit(planned.entries, margin).size();
  const std::string measured = dry_run    ? " (measured by dry runs)"
                               : near > 0 ? " (--dry-run measures them)"
                                          : "";
  return fmt::format(
      "memory: model of the built-in step; more than {:g} % over the limit is pruned; close to it: {}{}\n",
      100 * margin, near, measured);
}

Expected<void> print_memory(Io& io, const driver::Planned& planned, const std::string& id) {
  const auto is_meant = [&](const PlanEntry& e) { return e.id.starts_with(id); };
  const auto entry = std::ranges::find_if(planned.entries, is_meant);
  if (entry == planned.entries.end()) return fail(fmt::format("no trial of the plan begins with '{}'", id));
  if (std::find_if(entry + 1, planned.entries.end(), is_meant) != planned.entries.end())
    return fail(fmt::format("several trials begin with '{}'; give more of the id", id));
  if (!has_memory(*entry))
    return fail(fmt::format("trial {} has no prediction: {}", entry->id, answers::safe_text(entry->reason)));
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
  const auto limit = limit_of(entry->trial);
  io.out << fmt::format(
                "trial {}: memory of a rank of each pipeline stage at its fullest moment, profile sweep{}\n",
                entry->id, limit ? ", limit " + human_bytes(*limit) : "")
         << answers::to_text(table, io.out_is_terminal ? io.width : 0);
  return {};
}

nlohmann::json memory_json(const PlanEntry& e) {
  if (!has_memory(e) || e.trial.workload != Workload::kStep) return nullptr;
  const auto estimate = predict::estimate_memory(e.trial);
  const auto limit = limit_of(e.trial);
  nlohmann::json parts = nlohmann::json::object();
  for (std::size_t i = 0; i < shape::kMemoryParts; ++i)
    parts[shape::kMemoryPartNames[i]] = static_cast<i64>(estimate.parts().of[i]);
  return {{"fullest_stage", estimate.fullest},
          {"limit_bytes", limit ? nlohmann::json(static_cast<i64>(*limit)) : nullptr},
          {"parts", std::move(parts)}};
}

}  // namespace sweep::cli
