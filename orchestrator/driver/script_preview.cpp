#include "orchestrator/driver/script_preview.h"

#include <fmt/format.h>

#include "base/expected.h"
#include "orchestrator/driver/scratch_folder.h"
#include "orchestrator/driver/spool_root.h"
#include "orchestrator/driver/sweep_driver.h"
#include "orchestrator/run/demand.h"

namespace sweep::driver {

// The plan goes into a database of its own, which answers as the database of a run would.
Expected<std::vector<store::Demand>> demand_of(std::span<const PlanEntry> entries) {
  SWEEP_GET(const auto scratch, ScratchFolder::make());
  store::StoreDependencies dependencies;
  dependencies.durable = false;
  SWEEP_GET(auto driver, SweepDriver::open(scratch.path() / "plan.db", std::move(dependencies)));
  store::SweepRow row;
  row.name = "plan";
  SWEEP_TRY(driver.make(row));
  SWEEP_TRY(driver.take_lease());
  SWEEP_TRY(driver.sync_plan(entries, {}));
  return driver.store().demand(driver.sweep().id);
}

Expected<std::vector<launch::Preview>> preview_scripts(std::span<const PlanEntry> entries,
                                                       const LaunchSettings& launch,
                                                       const std::filesystem::path& db) {
  SWEEP_GET(const auto choice, choose_script_launcher(launch));
  SWEEP_GET(const auto limits, choice.config->prepare({}));
  auto bounds = bounds_of(limits);
  bounds.idle_nodes = limits.idle_nodes;
  SWEEP_GET(const auto demand, demand_of(entries));
  if (const auto beyond = run::beyond_bounds(demand, bounds)) return fail(*beyond);
  auto programs = program_paths({});
  programs.screen = choice.config->screen();
  std::vector<launch::Preview> out;
  for (const auto& wanted : run::allocations_wanted(demand, {}, bounds)) {
    launch::AllocationRequest allocation;
    allocation.id = fmt::format("a{:04}-00000000", out.size() + 1);
    allocation.spool = spool_root_of(db) / allocation.id;
    allocation.nodes = wanted.nodes, allocation.hardware = wanted.hardware;
    allocation.slots = limits.slots, allocation.gpus = wanted.gpus(limits.slots);
    allocation.seconds = wanted.seconds;
    SWEEP_GET(auto preview, choice.config->preview(allocation, programs));
    out.push_back(std::move(preview));
  }
  return out;
}

}  // namespace sweep::driver
