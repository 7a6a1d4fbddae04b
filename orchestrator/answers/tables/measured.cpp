#include "orchestrator/answers/tables/measured.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "orchestrator/answers/format.h"
#include "schema/codec.h"
#include "schema/columns.h"
#include "schema/rehearsal.h"

namespace sweep::answers {
namespace {

constexpr std::size_t kNamedHosts = 4;

bool is_import(const ResultRow& row, const Provenance* from) {
  return (from && from->launcher == "import") || row.outcome == Outcome::kFailedUnknown;
}

std::string what_ran(const ResultRow& row, const Provenance* from) {
  if (is_import(row, from)) return "an import: these are another program's numbers, measured elsewhere";
  const std::string_view what =
      row.trial.workload == Workload::kStep ? "sweep's own training step" : "a user's own trainer";
  const auto& steps = row.metrics.timed_steps;
  const std::string over = steps ? fmt::format(", {} timed step{}", *steps, *steps == 1 ? "" : "s") : "";
  const std::string when = row.finished_unix_ns ? ", " + utc_time(*row.finished_unix_ns).substr(0, 10) : "";
  return fmt::format("{}{}{}", what, over, when);
}

std::string hosts_of(const Provenance& from) {
  std::vector<std::string> names;
  std::size_t told = 0;
  for (const Environment& node : from.nodes) {
    if (node.host.empty()) continue;
    if (++told <= kNamedHosts) names.push_back(safe_text(node.host));
  }
  if (names.empty()) return "";
  return fmt::format("{} node{}: {}{}", told, told == 1 ? "" : "s", fmt::join(names, ", "),
                     told > names.size() ? ", ..." : "");
}

std::string clocks_of(const ResultRow& row, const Environment* node) {
  if (row.metrics.sm_clock_mhz) {
    const auto& throttle = row.metrics.throttle;
    return fmt::format("SM clock {} MHz mean{}", significant(*row.metrics.sm_clock_mhz),
                       throttle ? fmt::format(", throttled ({})", safe_text(*throttle)) : "");
  }
  if (node && node->facts.clocks)
    return fmt::format("CPU clock {} MHz when the allocation began", safe_text(node->facts.clocks->cpu_mhz));
  return "";
}

}  // namespace

std::string devices_of(const Environment& node) {
  if (!node.facts.gpus || node.facts.gpus->empty()) return safe_text(node.facts.cpu);
  std::map<std::string, std::size_t> count;
  for (const GpuFacts& gpu : *node.facts.gpus) ++count[safe_text(gpu.name)];
  std::string out;
  for (const auto& [name, n] : count) out += fmt::format("{}{} x {}", out.empty() ? "" : ", ", n, name);
  return out;
}

std::vector<std::string> measured_lines(const ResultRow& row, const Provenance* from) {
  if (is_rehearsal(row.sweep)) return {"nothing: times are modelled on phantom GPUs (docs/rehearsal.md)"};
  std::vector<std::string> out = {what_ran(row, from)};
  if (is_import(row, from)) return out;
  const Environment* node = from && !from->nodes.empty() ? &from->nodes.front() : nullptr;
  const std::string hosts = from ? hosts_of(*from) : "", devices = node ? devices_of(*node) : "";
  if (hosts.empty() && devices.empty())
    out.emplace_back("nodes unknown");
  else
    out.push_back(fmt::format(
        "on {}{}{}{}", hosts.empty() ? "nodes not named" : hosts, devices.empty() ? "" : "; ", devices,
        node && !node->allocation.empty() ? "; allocation " + safe_text(node->allocation) : ""));
  const std::string backend = from ? safe_text(from->effective.backend.value_or("")) : "";
  std::string line = backend.empty() && row.trial.world() == 1 ? "one rank, no transport"
                     : backend.empty()                         ? "transport unknown"
                                                               : "transport " + backend;
  const std::string clocks = clocks_of(row, node);
  out.push_back(fmt::format("{}; {}", line, clocks.empty() ? "clocks unknown" : clocks));
  if (const i64 beside = row.metrics.neighbours.value_or(0); beside > 0)
    out.push_back(fmt::format("beside {} other trial{} on the same node{}: its times are disturbed", beside,
                              beside == 1 ? "" : "s", row.trial.nodes == 1 ? "" : "s"));
  if (const auto reported = row.metrics.ranks_reported; reported && *reported < row.trial.world())
    out.push_back(
        fmt::format("{} of {} ranks reported steps: the step time is theirs", *reported, row.trial.world()));
  if (row.metrics.steps_saved)
    out.push_back(fmt::format("stopped early, clearly slower than the best so far: {} of {} steps were timed",
                              row.metrics.timed_steps.value_or(0),
                              row.metrics.timed_steps.value_or(0) + *row.metrics.steps_saved));
  return out;
}

nlohmann::json measured_json(const ResultRow& row, const Provenance* from) {
  nlohmann::json out = {{"what", is_import(row, from) ? "import" : to_string(row.trial.workload)}};
  if (row.metrics.neighbours) out["neighbours"] = *row.metrics.neighbours;
  nlohmann::json nodes = nlohmann::json::array();
  if (from) {
    for (const Environment& node : from->nodes)
      nodes.push_back(
          {{"host", safe_text(node.host)}, {"allocation", node.allocation}, {"facts", to_json(node.facts)}});
    out["effective"] = to_json(from->effective);
    out["launcher"] = from->launcher;
  }
  out["nodes"] = nodes;
  return out;
}

}  // namespace sweep::answers
