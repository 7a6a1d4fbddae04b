// Launchers: which one a run uses, with what settings: grid, site profiles and the command line brought
// together. The only place that makes one.
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>

#include "orchestrator/cli/command.h"
#include "orchestrator/grid/grid.h"
#include "orchestrator/launch/slurm/slurm_options.h"
#include "orchestrator/launch/slurm/slurm_script.h"
#include "orchestrator/run/run_sweep.h"

namespace sweep::cli {

struct LaunchRequest {
  std::string on;           // empty: what the grid names, an allocation this process stands in, else local
  std::string agent, rank;  // programs; empty: beside sweep
  std::string start = "zygote";
  std::string screen;  // show or leave_out; empty: what the launch section says
  i64 slots = 0;       // 0: what the launcher has
  i64 job = 0;         // a Slurm allocation that is there already; 0: none, or the one this process stands in
};

struct LaunchChoice {
  std::string on;
  std::string settings = "{}";      // JSON of this launcher: site profiles, and the grid's own on top
  std::optional<double> gpu_hours;  // what a site allows one sweep
  std::map<std::string, double> usd_per_node_hour;  // by hardware, where the site says
  std::string sites;                                // the profiles that were read, for people
  i64 existing_job = 0;                             // the Slurm allocation whose nodes are used; 0: new jobs
};

// `launch`: the grid's section, or what a sweep has kept of it.
Expected<LaunchChoice> choose_launcher(const std::string& launch, const LaunchRequest&);

// Trials side by side need a GPU for each slot: refuses more slots than nodes of these kinds of hardware have GPUs, as
// far as that is known before a node is seen. On CPU slots are free.
Expected<void> slots_fit(const LaunchChoice&, const LaunchRequest&, const std::set<std::string>& hardware);

// What a run would say of hosts reached by ssh before it starts anything: none are named, or too few for some trials.
std::optional<std::string> hosts_short(const LaunchChoice&, const std::vector<PlanEntry>&);

// A warning: trials have more CPU ranks than this machine has cores, so what they measure is the waiting for a core.
std::optional<std::string> ranks_beyond_cores(const LaunchChoice&, const std::vector<PlanEntry>&);

// Slots of a node that jobs of these settings hand out.
Expected<i64> slots_of(const launch::SlurmOptions&);

// Asks Slurm of the partitions that these settings name: how many nodes stand idle, and the longest a job may last, which
// bounds what is asked for. An error: `time` is longer than that. What Slurm does not say stays open.
Expected<void> know_partitions(launch::SlurmOptions&);

// The programs that a run starts. Error: one is missing.
Expected<launch::Programs> programs_for(const LaunchRequest&);

// Sets what the launcher decides of the settings and gives its maker. Errors: programs that are missing,
// settings that no launcher takes.
Expected<run::MakeLauncher> prepare_launcher(const LaunchChoice&, const LaunchRequest&, run::Settings&);

}  // namespace sweep::cli
