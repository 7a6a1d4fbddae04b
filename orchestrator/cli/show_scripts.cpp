#include "orchestrator/cli/show_scripts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/expected.h"
#include "base/files.h"
#include "orchestrator/cli/launchers.h"
#include "orchestrator/launch/slurm/slurm_script.h"
#include "orchestrator/run/demand.h"
#include "schema/codec.h"
#include "schema/spool.h"

namespace sweep::cli {
namespace {

// What the store would say once the plan is in it.
std::vector<store::Demand> demand_of(const std::vector<PlanEntry>& entries) {
  std::map<std::pair<std::string, i64>, store::Demand> groups;
  for (const auto& entry : entries) {
    if (!entry.admitted) continue;
    auto& group = groups[{entry.trial.hardware, entry.trial.nodes}];
    group.hardware = entry.trial.hardware, group.nodes = entry.trial.nodes;
    group.gpus_per_node = std::max(group.gpus_per_node, entry.trial.gpus_per_node);
    ++group.trials;
    group.predicted_s += entry.predicted.seconds.value_or(0);
    group.longest_s = std::max(group.longest_s, entry.predicted.seconds.value_or(0));
    group.unpredicted += entry.predicted.seconds ? 0 : 1;
  }
  std::vector<store::Demand> out;
  for (auto& [key, group] : groups) out.push_back(std::move(group));
  return out;
}

}  // namespace

Expected<launch::CommandResult> test_only(const std::string& script) {
  const auto file =
      std::filesystem::temp_directory_path() / fmt::format("sweep-test-{}.sh", static_cast<i64>(::getpid()));
  SWEEP_TRY(files::write_atomically(file, script));
  auto said = launch::run_alone({"sbatch", "--test-only", file.string()}, 60);
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  return said;
}

int show_scripts(Io& io, const Planned& planned, const std::string& db) {
  LaunchRequest request;
  request.on = "slurm";
  const auto choice = choose_launcher(planned.grid.launch, request);
  const auto settings = choice.and_then([](const LaunchChoice& c) { return parse_json(c.settings); });
  auto options = settings.and_then([](const nlohmann::json& j) { return launch::slurm_options_from(j); });
  if (!options) return refuse(io, options.error());
  if (auto known = know_partitions(*options); !known) return refuse(io, known.error());
  run::Bounds bounds{options->max_nodes, options->max_allocations, options->time_s,
                     options->allocation_nodes};
  bounds.spread_s = options->spread_s;
  for (const auto& [partition, idle] : options->idle) bounds.idle_nodes = std::max(bounds.idle_nodes, idle);
  const auto groups = demand_of(planned.entries);
  const auto wanted = run::allocations_wanted(groups, {}, bounds);
  if (const auto beyond = run::beyond_bounds(groups, bounds)) return refuse(io, {*beyond});
  const auto slots = slots_of(*options);
  if (!slots) return refuse(io, slots.error());
  launch::Programs programs{program_dir() / "sweep-agent", program_dir() / "sweep-rank", true};
  programs.screen = settings->value("screen", "");
  bool taken = true;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    launch::AllocationRequest allocation;
    allocation.id = fmt::format("a{:04}-00000000", i + 1);
    allocation.spool = std::filesystem::absolute(db + ".spool") / allocation.id;
    allocation.nodes = wanted[i].nodes, allocation.hardware = wanted[i].hardware;
    allocation.slots = *slots, allocation.gpus = wanted[i].gpus(*slots);
    allocation.seconds = wanted[i].seconds;
    const auto script = launch::slurm_script(allocation, *options, programs);
    if (!script) return refuse(io, script.error());
    io.out << *script << '\n' << std::flush;
    const auto said = test_only(*script);
    const bool ok = said && said->ok();
    io.err << (ok ? "" : "sbatch would not take it: ")
           << (said ? said->err + said->out : said.error().message);
    taken = taken && ok;
  }
  return taken ? kAnswered : kUnanswered;
}

}  // namespace sweep::cli
