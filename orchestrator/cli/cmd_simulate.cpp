// sweep simulate: how long a grid would take on a cluster, and where its node time would go.
#include <fmt/format.h>

#include <ostream>

#include "orchestrator/cli/command.h"
#include "orchestrator/driver/launchers.h"
#include "orchestrator/driver/memory_check.h"
#include "orchestrator/driver/planning.h"
#include "orchestrator/driver/scratch_folder.h"
#include "orchestrator/driver/strategy_choice.h"
#include "orchestrator/simulate/simulation.h"

namespace sweep::cli {
namespace {

struct SimulateOptions {
  std::string grid;
  std::uint64_t max_points = grid::ReadOptions{}.max_points;
  bool json = false;
  simulate::Assumptions assumed;
  // Flags override the Slurm settings of the grid and the site.
  std::optional<i64> nodes, jobs, job_nodes;
};

// A cluster as large as the run would hold of it.
Expected<simulate::Assumptions> assumptions(const SimulateOptions& o, const driver::Planned& planned) {
  const grid::Grid& grid = planned.grid;
  auto out = o.assumed;
  SWEEP_GET(const auto choice, driver::choose_script_launcher(grid.launch));
  const auto size = choice.config->cluster_size().value_or(launch::ClusterSize{});
  out.nodes = o.nodes.value_or(size.max_nodes.value_or(out.nodes));
  out.jobs = o.jobs.value_or(size.max_allocations.value_or(out.jobs));
  out.job_nodes = o.job_nodes.value_or(size.allocation_nodes.value_or(out.job_nodes));
  if (!out.job_s) out.job_s = size.time_s;
  out.spread_s = size.spread_s;
  out.retries_crash = grid.limits.retries_crash;
  out.retries_infra = grid.limits.retries_infra;
  out.strategy = driver::chosen_strategy(grid, {}).value_or(Strategy());
  out.gpu_hours = driver::smaller_limit(grid.limits.gpu_hours, choice.gpu_hours);
  if (!grid.limits.usd) return out;
  const auto hours =
      driver::gpu_hours_for(*grid.limits.usd, planned.entries, choice.usd_per_node_hour, false);
  if (!hours) return tl::unexpected(hours.error());
  out.gpu_hours = driver::smaller_limit(out.gpu_hours, *hours);
  if (out.gpu_hours == *hours) out.usd = grid.limits.usd;
  return out;
}

int simulate_grid(Io& io, const SimulateOptions& o) {
  auto planned = driver::make_plan(o.grid, o.max_points, {}, progress_to(io, false));
  if (!planned) return refuse(io, planned.error());
  if (auto checked = driver::check_memory(*planned, driver::DryRunScope::kNearest, 0, progress_to(io, true));
      !checked)
    return refuse(io, checked.error());
  const auto scratch = driver::ScratchFolder::make();
  if (!scratch) return refuse(io, scratch.error());
  const auto assumed = assumptions(o, *planned);
  if (!assumed) return refuse(io, assumed.error());
  const auto forecast =
      simulate::simulate(planned->entries, planned->grid.measure, *assumed, scratch->path());
  if (!forecast) return refuse(io, forecast.error());
  io.out << (o.json ? simulate::to_json(*forecast) : simulate::to_text(*forecast));
  return forecast->every_trial_has_an_answer() ? kAnswered : kUnanswered;
}

void add_cluster(CLI::App& c, SimulateOptions& o) {
  auto& a = o.assumed;
  c.add_option(
       "--nodes", o.nodes,
       fmt::format("nodes that the sweep may hold at once; absent: max_nodes of launch.slurm, else {}",
                   a.nodes))
      ->check(CLI::Range(1, 1000000));
  c.add_option("--spares", a.spares, "spare nodes, which replace broken ones")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  c.add_option("--jobs", o.jobs, fmt::format("allocations at once; absent: max_allocations, else {}", a.jobs))
      ->check(CLI::Range(1, 100000));
  c.add_option(
       "--job-nodes", o.job_nodes,
       fmt::format("nodes of one allocation, unless a trial needs more; absent: allocation_nodes, else {}",
                   a.job_nodes))
      ->check(CLI::Range(1, 1000000));
  c.add_option("--job-seconds", a.job_s,
               "the longest an allocation may last; absent: time of launch.slurm, else what its work needs")
      ->check(above_zero());
  c.add_option("--queue-seconds", a.queue_s, "mean wait of an allocation in the queue")
      ->check(not_negative())
      ->capture_default_str();
}

void add_failures(CLI::App& c, simulate::Assumptions& a) {
  c.add_option("--mtbf", a.node_mtbf_h, "mean hours between failures of one node; 0: none fails")
      ->check(not_negative())
      ->capture_default_str();
  c.add_option("--repair", a.repair_h, "hours until a broken node is back")
      ->check(not_negative())
      ->capture_default_str();
  c.add_option("--preempted", a.preempted_per_h, "preemptions of each allocation, per hour")
      ->check(not_negative())
      ->capture_default_str();
  c.add_option("--oom", a.oom_percent, "percent of attempts that run out of memory")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  c.add_option("--crash", a.crash_percent, "percent of attempts that crash")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  c.add_option("--hang", a.hang_percent, "percent of attempts that hang")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  c.add_option("--spread", a.spread, "standard deviation of log(real / predicted time)")
      ->check(CLI::Range(0.0, 3.0))
      ->capture_default_str();
  c.add_option("--seed", a.seed, "seed of the random numbers: the same seed gives the same simulation")
      ->capture_default_str();
}

}  // namespace

void add_simulate(Registry r) {
  auto* c = r.app.add_subcommand(
      "simulate", "simulate how long a grid would take on a cluster with failures; starts nothing");
  auto o = std::make_shared<SimulateOptions>();
  c->add_option("GRID", o->grid, "the grid file (YAML)")->required();
  c->add_flag("--json", o->json, "as one line of JSON");
  add_cluster(*c, *o);
  add_failures(*c, o->assumed);
  c->add_option("--max-points", o->max_points, "largest number of combinations before `where`")
      ->capture_default_str();
  c->callback([r, o] { r.chosen = [r, o] { return simulate_grid(r.io, *o); }; });
}

}  // namespace sweep::cli
