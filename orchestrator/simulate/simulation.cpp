#include "orchestrator/simulate/simulation.h"

#include <algorithm>

#include "base/expected.h"
#include "orchestrator/driver/sweep_driver.h"
#include "orchestrator/simulate/sim_launcher.h"

namespace sweep::simulate {
namespace {

// A database of its own, with a sweep that holds the plan; this process has its lease.
Expected<driver::SweepDriver> stored_plan(const std::filesystem::path& scratch,
                                          std::span<const PlanEntry> plan, const Assumptions& assumed,
                                          const MeasurePlan& measure) {
  store::StoreDependencies dependencies;
  dependencies.durable = false;
  auto driver = driver::SweepDriver::open(scratch / "simulation.db", std::move(dependencies));
  if (!driver) return driver;
  store::SweepRow row;
  row.name = "simulation";
  row.options.retries_crash = assumed.retries_crash, row.options.retries_infra = assumed.retries_infra;
  SWEEP_TRY(driver->make(row));
  SWEEP_TRY(driver->take_lease());
  SWEEP_TRY(driver->sync_plan(plan, measure));
  return driver;
}

run::Settings settings_of(const Assumptions& assumed, SimClock& clock, const std::filesystem::path& scratch) {
  run::Settings s;
  s.measure = {0, 1, 1};  // a simulation needs no samples of a rank's steps
  s.spool_root = scratch / "spool";
  s.launcher = "simulated";
  s.allocate_per_shape = true;
  s.bounds = {assumed.nodes, assumed.jobs, assumed.job_s, assumed.job_nodes};
  s.bounds.spread_s = assumed.spread_s;
  s.clock = &clock;
  s.strategy = assumed.strategy;
  s.gpu_hours = assumed.gpu_hours, s.usd = assumed.usd;
  return s;
}

}  // namespace

Expected<Forecast> simulate(std::span<const PlanEntry> plan, const MeasurePlan& measure,
                            const Assumptions& assumed, const std::filesystem::path& scratch) {
  const auto began = std::chrono::steady_clock::now();
  Forecast out;
  out.assumed = assumed;
  auto driver = stored_plan(scratch, plan, assumed, measure);
  if (!driver) return tl::unexpected(driver.error());
  SimClock clock;
  SimulatedOutcomes outcomes(assumed, plan, measure);
  driver::QuietObserver quiet;
  const auto report = driver->run(
      settings_of(assumed, clock, scratch),
      [&](boost::asio::io_context&, launch::Launcher::Sink sink) {
        return std::make_unique<SimLauncher>(clock, assumed, outcomes, out.account, std::move(sink));
      },
      quiet);
  if (!report) return tl::unexpected(report.error().error);
  SWEEP_GET(const auto progress, driver->store().progress(driver->sweep().id));
  out.unpredicted = std::ranges::count_if(
      plan, [](const PlanEntry& each) { return each.admitted && !each.predicted.step_ms; });
  out.trials = progress.total, out.pending = progress.pending + progress.running;
  out.outcomes = progress.by_outcome;
  out.end = report->end.end == run::End::kDone ? "" : report->end.why;
  out.makespan_s = clock.seconds();
  out.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return out;
}

}  // namespace sweep::simulate
