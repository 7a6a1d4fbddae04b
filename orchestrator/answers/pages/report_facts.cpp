// The report's record: what failed with its evidence, where it was measured, how to repeat it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/pages/report_parts.h"
#include "orchestrator/answers/tables/explain.h"
#include "orchestrator/answers/tables/measured.h"
#include "schema/codec.h"
#include "schema/rehearsal.h"
#include "schema/strategy.h"

namespace sweep::answers::parts {
namespace {

constexpr std::size_t kKinds = 14, kEvidenceBytes = 3000, kHosts = 12, kEnvironments = 12;

// Digits differ between reasons of one kind; words do not.
std::string kind_of_reason(std::string_view reason) {
  std::string out;
  for (const char c : reason) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit)
      out += c;
    else if (!out.ends_with('#'))
      out += '#';
  }
  return out;
}

struct Failure {
  i64 count = 0;
  const ResultRow* example = nullptr;
};

std::string failure_row(const ReportInput& in, const std::string& outcome, const Failure& failure,
                        std::span<const Field> differ) {
  const ResultRow& row = *failure.example;
  std::string evidence;
  if (!row.evidence.empty()) {
    const auto said = from_text<Evidence>(row.evidence);
    const std::string text =
        said ? to_json(*said).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) : row.evidence;
    if (const auto stacks = said ? deciding_stacks(*said) : std::nullopt)
      evidence = fmt::format("<details><summary>stacks of rank {}</summary>{}</details>", stacks->rank,
                             block(stacks->text.substr(0, kEvidenceBytes)));
    const bool cut = text.size() > kEvidenceBytes;
    evidence += fmt::format(
        "<details><summary>evidence</summary>{}{}</details>", block(text.substr(0, kEvidenceBytes)),
        cut ? paragraph(fmt::format("cut; `sweep explain {} --db {}` has the whole", row.trial_id, in.db))
            : "");
  }
  return fmt::format(
      "<tr><td>{}</td><td class=\"n\">{}</td><td>{}{}</td><td>{}<br><span "
      "class=\"small\">{}</span></td></tr>\n",
      escape_xml(outcome), failure.count, escape_xml(row.reason.empty() ? "no reason recorded" : row.reason),
      evidence, escape_xml(name_of(row, differ)), escape_xml(row.trial_id));
}

// One fact of the nodes of one kind.
struct Machine {
  std::string launcher, devices, driver, software;
  auto operator<=>(const Machine&) const = default;
};
struct Seen {
  std::set<std::string> hosts, allocations;
  i64 results = 0;
};

Machine machine_of(const Environment& node, const std::string& devices) {
  const NodeFacts& facts = node.facts;
  const auto said = [](const std::string& fact, const char* shown) {
    return fact.empty() ? std::string() : fmt::format("{} {}", shown, safe_text(fact));
  };
  const auto join = [](std::initializer_list<std::string> parts) {
    std::string out;
    for (const auto& part : parts) out += (out.empty() || part.empty() ? "" : ", ") + part;
    return out;
  };
  return {safe_text(node.launcher), devices,
          join({said(facts.driver, "driver"), said(facts.driver_cuda, "CUDA"), said(facts.nccl, "NCCL")}),
          join({said(facts.libtorch, "LibTorch"), said(facts.build, "build"), said(facts.kernel, "")})};
}

std::string some_of(const std::set<std::string>& names) {
  std::string out;
  std::size_t shown = 0;
  for (const auto& name : names) {
    if (name.empty() || ++shown > kHosts) continue;
    out += (out.empty() ? "" : ", ") + safe_text(name);
  }
  return shown > kHosts ? out + fmt::format(", ... ({} in all)", shown) : out;
}

// How many phantom GPUs the trials of a rehearsal have: "64", "8 to 64". Its node plays them all, and each agent counts
// as many as one node may have.
std::string worlds_of(std::span<const ResultRow> rows) {
  std::set<i64> worlds;
  for (const ResultRow& row : rows)
    if (cell_outcome_of(row) == CellOutcome::kOk || cell_outcome_of(row) == CellOutcome::kOom)
      worlds.insert(row.trial.world());
  if (worlds.empty()) return "no";
  return worlds.size() == 1 ? fmt::format("{}", *worlds.begin())
                            : fmt::format("{} to {}", *worlds.begin(), *worlds.rbegin());
}

std::string phantoms_of(const Environment& node, std::span<const ResultRow> rows) {
  std::set<std::string> names;
  for (const GpuFacts& gpu : node.facts.gpus.value_or(std::vector<GpuFacts>()))
    names.insert(safe_text(gpu.name));
  return fmt::format("{} phantom {}", worlds_of(rows), fmt::join(names, ", "));
}

// "Measured: 10 steps after 3 warm-up steps, 1 repeat."
std::string measuring_text(const std::optional<MeasurePlan>& plan) {
  if (!plan) return "";
  return fmt::format("Measured: {} after {}, {}.", counted(plan->steps, "step"),
                     counted(plan->warmup_steps, "warm-up step"), counted(plan->repeats, "repeat"));
}

}  // namespace

std::string failures(const ReportInput& in) {
  std::map<std::pair<std::string, std::string>, Failure> kinds;
  for (const ResultRow& row : in.rows) {
    const CellOutcome ended = cell_outcome_of(row);
    if (ended == CellOutcome::kOk || ended == CellOutcome::kPending) continue;
    std::string outcome(to_string(row.outcome));
    if (row.oom_kind) outcome += fmt::format(" ({})", to_string(*row.oom_kind));
    Failure& failure = kinds[{outcome, kind_of_reason(row.reason)}];
    ++failure.count;
    if (!failure.example) failure.example = &row;
  }
  if (kinds.empty()) return "";
  std::vector<std::pair<std::string, Failure>> sorted;
  for (const auto& [key, failure] : kinds) sorted.emplace_back(key.first, failure);
  // Trials that ran and failed come first, then those that never ran; the frequent before the rare.
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    const auto order = [](const Failure& f) {
      return cell_outcome_of(*f.example) == CellOutcome::kPruned ? 1 : 0;
    };
    if (order(a.second) != order(b.second)) return order(a.second) < order(b.second);
    return a.second.count > b.second.count;
  });
  const auto differ = varying(in.rows);
  std::string out =
      "<div class=\"wide\"><table>\n<tr><th>outcome</th><th class=\"n\">count</th><th>example</th>"
      "<th>its configuration</th></tr>\n";
  for (std::size_t i = 0; i < std::min(kKinds, sorted.size()); ++i)
    out += failure_row(in, sorted[i].first, sorted[i].second, differ);
  out += "</table></div>\n";
  if (sorted.size() > kKinds)
    out += paragraph(fmt::format("{} rarer kinds are not listed.", sorted.size() - kKinds));
  return out;
}

std::string environment(const ReportInput& in) {
  if (in.environments.empty()) return "";
  std::map<Machine, Seen> machines;
  for (const Environment& node : in.environments) {
    const bool rehearsed = is_rehearsal(in.sweep);
    Seen& seen = machines[machine_of(node, rehearsed ? phantoms_of(node, in.rows) : devices_of(node))];
    seen.hosts.insert(node.host);
    if (seen.allocations.insert(node.allocation).second) seen.results += node.results;
  }
  Table table;
  table.columns = {"nodes", "devices", "driver", "software", "launcher", "allocations", "results"};
  const auto text = [](std::string words) {
    return words.empty() ? Value{"unknown"} : Value{std::move(words)};
  };
  for (const auto& [machine, seen] : machines) {
    if (table.rows.size() == kEnvironments) break;
    table.rows.push_back({text(some_of(seen.hosts)), text(machine.devices), text(machine.driver),
                          text(machine.software), text(machine.launcher),
                          static_cast<i64>(seen.allocations.size()), seen.results});
  }
  std::string out = html_table(table, Names(in.rows));
  if (machines.size() > kEnvironments)
    out += paragraph(fmt::format("{} more kinds of node are not listed.", machines.size() - kEnvironments));
  std::set<std::string> throttled;
  for (const ResultRow& row : in.rows) {
    if (row.metrics.throttle && !row.metrics.throttle->empty()) throttled.insert(*row.metrics.throttle);
  }
  if (!throttled.empty())
    out += paragraph("Throttling was seen while measuring: " + some_of(throttled) + ".");
  return out;
}

// The command that runs the sweep again, with the options that it was run with; a strategy of the grid is named too.
std::string command_again(const ReportInput& in, const SweepOptions& options) {
  const auto number = [](const auto& value) { return value ? dump(*value) : std::string(); };
  std::string command = fmt::format("sweep run {} --db {}",
                                    shell_word(safe_text(in.grid_path.empty() ? "grid.yaml" : in.grid_path)),
                                    shell_word(safe_text(in.db)));
  if (options.rehearse_ranks) command += " --rehearse";
  const bool bounded = !options.rehearse_ranks && kept_strategy(options).scope() == StrategyScope::kQuestion;
  const std::pair<std::string_view, std::string> flags[] = {
      {" --rehearse-ranks ", number(options.rehearse_ranks)},
      {" --on ", options.rehearse_ranks ? "" : options.launcher},
      {" --slots ", number(options.slots)},
      {" --start ", options.start},
      {" --screen ", options.screen},
      {" --strategy ", options.strategy},
      {" --max-trials ", bounded ? number(options.max_trials) : ""},
      {" --audit ", number(options.audit)},
      {options.usd ? " --usd " : " --gpu-hours ", number(options.usd ? options.usd : options.gpu_hours)}};
  for (const auto& [flag, value] : flags)
    if (!value.empty()) command += std::string(flag) + shell_word(safe_text(value));
  return command;
}

std::string reproduce(const ReportInput& in) {
  std::string out;
  if (in.grid_text.empty()) {
    out += paragraph(
        "This sweep was not run from a grid file: its rows were imported, and no command here measures them "
        "again.");
  } else {
    out += block(command_again(in, in.options) + "\n");
    const std::string build = in.options.build, measure = measuring_text(in.options.measure);
    out += fmt::format("<p class=\"small\">{}{}</p>\n",
                       escape_xml(build.empty() ? "" : "Build " + build + ". "), escape_xml(measure));
    out += "<h3>The grid file</h3>\n" + block(in.grid_text);
  }
  out += "<h3>This page again</h3>\n" +
         block(fmt::format("sweep report {} --db {} -o report.html\n", shell_word(safe_text(in.sweep)),
                           shell_word(safe_text(in.db))));
  return out;
}

}  // namespace sweep::answers::parts
