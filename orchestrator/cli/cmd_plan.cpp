// sweep plan: what would run, what is pruned and why.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "orchestrator/answers/format.h"
#include "orchestrator/answers/tables/plan_view.h"
#include "orchestrator/answers/tables/tables.h"
#include "orchestrator/answers/tables/trial_command.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/run_strategy.h"
#include "orchestrator/driver/gpu_hours.h"
#include "orchestrator/driver/launchers.h"
#include "orchestrator/driver/memory_check.h"
#include "orchestrator/driver/planning.h"
#include "orchestrator/driver/script_preview.h"
#include "orchestrator/driver/strategy_forecast.h"
#include "orchestrator/export/results.h"
#include "orchestrator/grid/site.h"
#include "schema/codec.h"
#include "schema/run_order.h"

namespace sweep::cli {
namespace {

struct PlanOptions {
  std::string grid;
  std::uint64_t max_points = grid::ReadOptions{}.max_points;
  bool suggested = false, list = false, json = false, csv = false, sbatch = false, dry_run = false,
       no_dry_run = false;
  std::string memory_of;
  SweepSelector where;
};

Expected<void> list_plan(Io& io, const answers::PlanView& view, bool csv) {
  SWEEP_GET(const auto table, answers::plan_table(view));
  if (csv) return exports::write_csv(io.out, table, {});
  io.out << '\n' << answers::to_text(table, io.out_is_terminal ? io.width : 0);
  return {};
}

// Scripts to out; what the scheduler answers to them to err. Nothing is submitted.
int show_scripts(Io& io, const driver::Planned& planned, const std::string& db) {
  const auto previews = driver::preview_scripts(planned.entries, planned.grid.launch, db);
  if (!previews) return refuse(io, previews.error());
  bool accepted = true;
  for (const auto& each : *previews) {
    io.out << each.script << '\n' << std::flush;
    io.err << (each.accepted ? "" : "the scheduler would not take it: ") << each.answer;
    accepted = accepted && each.accepted;
  }
  return accepted ? kAnswered : kUnanswered;
}

// The GPU-hours that the sweep of this name has held, as text; empty where there is none.
std::string held_hours(const SweepSelector& of, std::optional<double> limit) {
  std::error_code ec;
  if (!std::filesystem::exists(of.db, ec)) return {};
  const auto opened = open_sweep(of, store::Mode::kReadOnly);
  if (!opened) return {};
  return answers::gpu_hours_text(
      driver::held_gpu_hours(*opened->store, opened->sweep, limit).value_or(answers::GpuHours()));
}

// The sums over admitted trials: time, price and what the sweep has held so far.
Expected<void> print_costs(Io& io, const driver::Planned& planned, const answers::PlanView& view,
                           const std::string& db) {
  const auto& entries = planned.entries;
  io.out << fmt::format("{}: {}\n", planned.grid.name, driver::summary(planned));
  if (!planned.grid.question.empty()) io.out << answers::safe_lines(planned.grid.question) << '\n';
  SWEEP_GET(const auto site, grid::read_site(grid::site_files()));
  if (const auto strategy = driver::chosen_strategy(planned.grid, {}); strategy && !strategy->runs_all()) {
    const auto most = driver::most_run(entries, *strategy);
    io.out << fmt::format("strategy {}: {}; of them at most {} run, for at most {} GPU-hours\n",
                          to_string(strategy->kind), driver::strategy_sentence(*strategy), most.trials,
                          answers::rough_hours(most.cost));
  }
  const auto usd = driver::predicted_usd(entries, site.usd_per_node_hour);
  io.out << answers::plan_total(view, driver::predicted_gpu_hours(entries), usd);
  for (const auto& origin : planned.times_from) io.out << "times of " << answers::safe_text(origin) << '\n';
  for (const auto& by : planned.corrected) io.out << "times of " << answers::safe_text(by) << '\n';
  for (const auto& why : planned.notes) io.out << "note: " << why << '\n';
  if (usd) {
    for (const auto& price : driver::prices_of(entries, site.usd_per_node_hour))
      io.out << "price: " << price << '\n';
  }
  if (const auto held = held_hours({db, planned.grid.name},
                                   driver::smaller_limit(planned.grid.limits.gpu_hours, site.gpu_hours));
      !held.empty())
    io.out << "so far: " << held << '\n';
  return {};
}

driver::DryRunScope scope_of(const PlanOptions& o) {
  if (o.dry_run) return driver::DryRunScope::kAll;
  return o.no_dry_run ? driver::DryRunScope::kNone : driver::DryRunScope::kNearest;
}

int plan_grid(Io& io, const PlanOptions& o) {
  auto planned = driver::make_plan(o.grid, o.max_points, o.where.db, progress_to(io, false),
                                   o.suggested ? std::optional(o.where.db) : std::nullopt);
  if (!planned) return refuse(io, planned.error());
  say_suggested(io, *planned);
  const auto checked = driver::check_memory(*planned, scope_of(o), 0, progress_to(io, false));
  if (!checked) return refuse(io, checked.error());
  if (!o.memory_of.empty()) {
    const auto shown =
        answers::memory_text(planned->entries, o.memory_of, io.out_is_terminal ? std::size_t(io.width) : 0);
    if (!shown) return refuse(io, shown.error());
    io.out << *shown;
    return kAnswered;
  }
  const auto choice = driver::choose_launcher(planned->grid.launch, {});
  if (choice)
    if (auto fits = driver::slots_fit(*choice, {}, driver::hardware_of(planned->entries)); !fits)
      return refuse(io, fits.error());
  if (const auto lacking = choice ? choice->config->lacking_hosts(planned->entries) : std::nullopt)
    io.err << fmt::format("sweep: {}\n", *lacking);
  if (const auto crowded = choice ? driver::ranks_beyond_cores(*choice, planned->entries) : std::nullopt)
    io.err << fmt::format("sweep: {}\n", *crowded);
  if (o.sbatch) return show_scripts(io, *planned, o.where.db);
  auto& entries = planned->entries;
  put_in_run_order(entries);
  auto rehearsed = answers::rehearsed_in(o.where.db);
  if (!rehearsed) return refuse(io, rehearsed.error());
  const answers::PlanView view{entries, std::move(*rehearsed), planned->grid.name};
  if (o.json) {
    for (const auto& entry : entries) io.out << dump(answers::plan_entry_json(view, entry)) << '\n';
    return kAnswered;
  }
  if (o.csv) {
    const auto listed = list_plan(io, view, true);
    return listed ? kAnswered : refuse(io, listed.error());
  }
  if (auto printed = print_costs(io, *planned, view, o.where.db); !printed)
    return refuse(io, printed.error());
  io.out << answers::memory_summary(entries, planned->grid.limits.memory_margin, checked->near,
                                    checked->measured)
         << answers::rehearsed_summary(view) << answers::pruned_text(view) << answers::first_command(entries);
  if (!o.list) return kAnswered;
  const auto listed = list_plan(io, view, false);
  return listed ? kAnswered : refuse(io, listed.error());
}

}  // namespace

void add_plan(Registry r) {
  auto* c = r.app.add_subcommand(
      "plan", "show what would run, in which order, and what is pruned and why; starts no trial");
  auto o = std::make_shared<PlanOptions>();
  c->add_option("GRID", o->grid, "the grid file (YAML); - reads standard input")->required();
  c->add_flag("--list", o->list, "list every trial, in run order");
  auto* json = c->add_flag("--json", o->json, "every trial as one line of JSON (docs/json.md)");
  c->add_flag("--csv", o->csv, "every trial as CSV, values as stored")->excludes(json);
  c->add_flag("--sbatch", o->sbatch,
              "print the batch scripts of the first allocations, and whether sbatch would accept them");
  auto* all =
      c->add_flag("--dry-run", o->dry_run,
                  "measure everything near its memory limit by dry runs of the step (needs sweep-rank); "
                  "without it, the 200 trials on GPUs that are nearest");
  c->add_flag("--no-dry-run", o->no_dry_run, "measure none; predictions alone decide")->excludes(all);
  c->add_option("--memory", o->memory_of, "show one trial's memory by pipeline stage and part")
      ->type_name("ID");
  add_suggested(*c, o->suggested);
  add_db(*c, o->where);
  c->add_option("--max-points", o->max_points, "largest number of combinations before `where`")
      ->capture_default_str();
  c->callback([r, o] { r.chosen = [r, o] { return plan_grid(r.io, *o); }; });
}

}  // namespace sweep::cli
