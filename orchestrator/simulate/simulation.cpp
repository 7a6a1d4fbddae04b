#include "orchestrator/simulate/simulation.h"

#include <fmt/format.h>

#include "orchestrator/run/retry_policy.h"
#include "orchestrator/run/run_sweep.h"
#include "orchestrator/simulate/sim_launcher.h"
#include "schema/sweep_options.h"

namespace sweep::simulate {
namespace {

class Quiet final : public run::Observer {
 public:
  void on_note(const std::string&) override {}
  void on_result(const PlanEntry&, const Result&) override {}
  void on_snapshot(const run::Snapshot&) override {}
};

struct Book {
  std::unique_ptr<store::Store> store;
  i64 sweep = 0;
};

Expected<Book> open_book(const std::filesystem::path& scratch, std::span<const PlanEntry> plan,
                         const Assumptions& assumed, const MeasurePlan& measure) {
  store::StoreDependencies seams;
  seams.durable = false;
  seams.decide_trial = run::decide_trial;
  auto opened = store::Store::open(scratch / "simulation.db", store::Mode::kReadWrite, std::move(seams));
  if (!opened) return tl::unexpected(opened.error());
  store::SweepRow row;
  row.name = "simulation";
  SweepOptions options;
  options.retries_crash = assumed.retries_crash, options.retries_infra = assumed.retries_infra;
  row.options_json = to_text(options);
  const auto sweep = (*opened)->ensure_sweep(row);
  if (!sweep) return tl::unexpected(sweep.error());
  const auto holder = (*opened)->take_lease(sweep->id);
  if (!holder) return tl::unexpected(holder.error());
  const auto synced = (*opened)->sync_plan(sweep->id, plan, measure);
  if (!synced) return tl::unexpected(synced.error());
  return Book{std::move(*opened), sweep->id};
}

run::Settings settings_of(const Assumptions& assumed, const Book& book, SimClock& clock,
                          const std::filesystem::path& scratch) {
  run::Settings s;
  s.sweep = book.sweep;
  s.measure = {0, 1, 1};  // what a rank says of its steps is not what a simulation is asked for
  s.spool_root = scratch / "spool";
  s.launcher = "simulated";
  s.allocate_per_shape = true;
  s.bounds = {assumed.nodes, assumed.jobs, assumed.job_s, assumed.job_nodes};
  s.bounds.spread_s = assumed.spread_s;
  s.clock = &clock;
  return s;
}

}  // namespace

Expected<Forecast> simulate(std::span<const PlanEntry> plan, const MeasurePlan& measure,
                            const Assumptions& assumed, const std::filesystem::path& scratch) {
  const auto began = std::chrono::steady_clock::now();
  Forecast out;
  out.assumed = assumed;
  auto book = open_book(scratch, plan, assumed, measure);
  if (!book) return tl::unexpected(book.error());
  SimClock clock;
  SimulatedOutcomes outcomes(assumed, plan, measure);
  Quiet quiet;
  const auto settings = settings_of(assumed, *book, clock, scratch);
  const auto end = run::run_sweep(
      *book->store, settings,
      [&](boost::asio::io_context&, launch::Launcher::Sink sink) {
        return std::make_unique<SimLauncher>(clock, assumed, outcomes, out.account, std::move(sink));
      },
      quiet);
  if (!end) return tl::unexpected(end.error());
  const auto progress = book->store->progress(book->sweep);
  if (!progress) return tl::unexpected(progress.error());
  out.trials = progress->total, out.pending = progress->pending + progress->running;
  out.outcomes = progress->by_outcome;
  out.end = end->end == run::End::kDone ? "" : end->why;
  out.makespan_s = clock.seconds();
  out.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return out;
}

}  // namespace sweep::simulate
