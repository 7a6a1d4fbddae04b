#include "orchestrator/driver/sweep_status.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "orchestrator/driver/gpu_hours.h"
#include "orchestrator/driver/holder.h"
#include "orchestrator/driver/launchers.h"
#include "orchestrator/driver/orchestrator_job.h"
#include "orchestrator/driver/strategy_forecast.h"
#include "orchestrator/grid/site.h"
#include "orchestrator/run/run_sweep.h"

namespace sweep::driver {
namespace {

// Details with the GPU-hours that were set when the sweep was planned, or that the site allows, whichever are fewer.
Expected<answers::RunDetails> details_of(store::Store& store, const store::SweepRow& sweep, i64 events) {
  const auto site = grid::read_site(grid::site_files());
  const auto limit = smaller_limit(sweep.options.gpu_hours, site ? site->gpu_hours : std::nullopt);
  SWEEP_GET(const auto hours, held_gpu_hours(store, sweep, limit));
  return answers::run_details(store, sweep.id, hours, events);
}

}  // namespace

answers::Progress progress_of(const store::SweepRow& sweep, const run::Snapshot& shot) {
  return {sweep,
          shot.counts,
          shot.best,
          shot.elapsed_s > 0 ? std::optional(shot.elapsed_s) : std::nullopt,
          seconds_of_all(sweep, shot),
          shot.best_by};
}

Expected<run::Snapshot> snapshot_of(store::Store& store, const store::SweepRow& sweep) {
  auto shot = run::take_snapshot(store, sweep.id, 0);
  if (!shot) return shot;
  SWEEP_GET(shot->seconds_left, seconds_left(store, sweep, *shot));
  return shot;
}

Expected<nlohmann::json> status_document(store::Store& store, const store::SweepRow& sweep,
                                         const run::Snapshot& shot, i64 events) {
  SWEEP_GET(const auto holder, store.lease(sweep.id));
  SWEEP_GET(const auto details, details_of(store, sweep, events));
  return answers::progress_json(progress_of(sweep, shot), details, holder);
}

Expected<void> add_details(answers::StatusView& view, store::Store& store, const store::SweepRow& sweep,
                           std::span<const answers::Field> shown) {
  constexpr i64 kEvents = 5;
  SWEEP_GET(const auto runs, run_by(store, sweep));
  answers::add_holder(view, runs);
  SWEEP_GET(const auto details, details_of(store, sweep, kEvents));
  answers::add_details(view, details, shown);
  return {};
}

void add_waiting_job(answers::StatusView& view, store::Store& store, const store::SweepRow& sweep,
                     const std::filesystem::path& db) {
  const auto holder = store.lease(sweep.id);
  if (!holder || *holder) return;
  const auto jobs = living_orchestrator_jobs(db, {sweep.name});
  if (jobs && !jobs->empty()) view.now.push_back(fmt::format("waits as Slurm job {}", jobs->begin()->second));
}

}  // namespace sweep::driver
