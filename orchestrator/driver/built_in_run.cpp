#include "orchestrator/driver/built_in_run.h"

#include <fmt/format.h>

#include <limits>

#include "orchestrator/grid/grid.h"
#include "orchestrator/interop/recipes.h"
#include "schema/codec.h"

namespace sweep::driver {

Expected<BuiltInPlace> place_of(const SelfTestRequest& request) {
  BuiltInPlace out;
  if (!request.grid.empty()) {
    constexpr auto kAny = std::numeric_limits<std::uint64_t>::max();  // points: none is expanded
    SWEEP_GET(auto grid, grid::read_file(request.grid, {kAny, interop::built_in_recipes()}));
    out.settings = std::move(grid.launch), out.working_folder = std::move(grid.working_folder);
  }
  SWEEP_GET(auto choice, choose_launcher(out.settings, request.launch));
  out.choice = std::move(choice);
  return out;
}

std::vector<PlanEntry> built_in_entries(const std::vector<Trial>& trials, double predicted_seconds) {
  std::vector<PlanEntry> entries;
  for (const Trial& trial : trials) {
    PlanEntry entry;
    entry.trial = trial;
    entry.id = trial_id(trial);
    entry.predicted.seconds = predicted_seconds;
    entry.order = static_cast<i64>(entries.size());
    entry.source = "built in";
    entries.push_back(std::move(entry));
  }
  return entries;
}

Expected<BuiltInRun> run_built_in(const SelfTestRequest& request, const std::string& name,
                                  std::span<const PlanEntry> entries, SweepOptions options,
                                  const MakeObserver& make_observer) {
  SWEEP_GET(const auto place, place_of(request));
  SWEEP_GET(auto driver, SweepDriver::open(request.db));
  options.launcher = place.choice.on;
  options.launch = place.settings;
  options.retries_crash = options.retries_infra = 0;
  store::SweepRow row;
  row.name = name;
  row.options = options;
  SWEEP_TRY(driver.make(row));
  auto report =
      run_with_lease(driver, {entries, *options.measure, outcomes_of_runs()},
                     [&](SweepDriver& own) { return own.run(place.choice, request.launch, make_observer); });
  if (!report && report.error().problem == DriveProblem::kBusy)
    return fail(
        fmt::format("the {} in {} is already under way: {}", name, request.db, report.error().error.message));
  if (!report) return tl::unexpected(report.error().error);
  return BuiltInRun{std::move(driver), std::move(*report)};
}

Expected<std::string> hosts_of(store::Store& store, i64 sweep, const std::string& trial, i64 attempt) {
  SWEEP_GET(const auto attempts, store.attempts(sweep, trial));
  std::string names;
  for (const auto& each : attempts) {
    if (each.id != attempt) continue;
    SWEEP_GET(const auto nodes, store.nodes_of(each.allocation));
    for (const auto& node : nodes) names += (names.empty() ? "" : ", ") + node.host;
  }
  return names;
}

}  // namespace sweep::driver
