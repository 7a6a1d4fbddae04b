// Launchers: which one a run uses and with what settings: grid, site profiles and the command line brought
// together. The only place that makes one.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "orchestrator/driver/registry.h"
#include "orchestrator/run/run_sweep.h"
#include "schema/sweep_options.h"

namespace sweep::driver {

struct LaunchRequest {
  std::string on;                  // empty: what the grid names, the job this process runs in, else local
  std::string agent, rank;         // programs; empty: beside sweep
  std::optional<RankStart> start;  // nullopt: zygote
  std::string screen;              // show or leave_out; empty: what the launch section says
  i64 slots = 0;                   // 0: what the launcher has
  i64 job = 0;  // a job whose nodes are used instead of new ones; 0: none, or the one this process runs in
};

struct LaunchChoice {
  std::string on;
  std::shared_ptr<launch::LaunchConfig> config;     // never null
  std::optional<double> gpu_hours;                  // the site's limit for one sweep
  std::map<std::string, double> usd_per_node_hour;  // key: hardware for which the site has a price
  std::string checkpoint_folder;                    // the site's; empty: it has none
  std::string sites;                                // the profiles that were read, for people
  i64 existing_job = 0;                             // the job whose nodes are used; 0: new ones
};

// The settings of the grid, or what a sweep has kept of them. Error: settings or a profile that no launcher takes.
Expected<LaunchChoice> choose_launcher(const LaunchSettings&, const LaunchRequest&);
// The request, with what the sweep has kept in the place of what it leaves open: launcher, slots, start, screen.
LaunchRequest with_kept(LaunchRequest, const SweepOptions&);
// The launcher that a sweep has kept, unless the request names another. Rehearsals: rehearsal_choice().
Expected<LaunchChoice> kept_launcher(const SweepOptions&, const LaunchRequest&);
// A launcher that submits scripts: the one that the section names, else the first one that does.
Expected<LaunchChoice> choose_script_launcher(const LaunchSettings&);

// Trials side by side need a GPU for each slot: refuses more slots than nodes of these kinds of hardware have
// GPUs, as far as that is known before a node is seen. On CPU slots are free.
Expected<void> slots_fit(const LaunchChoice&, const LaunchRequest&, const std::set<std::string>& hardware);

// A warning: trials have more CPU ranks than this machine has cores, so what they measure is the waiting for
// a core.
std::optional<std::string> ranks_beyond_cores(const LaunchChoice&, std::span<const PlanEntry>);

// The paths of the programs that a run starts; they need not be there.
launch::Programs program_paths(const LaunchRequest&);
// The programs that these trials need; the agent gets --screen. Error: a program is missing.
Expected<launch::Programs> programs_for(const LaunchRequest&, std::span<const PlanEntry>,
                                        const std::string& screen = "");
// The built-in step runs in some trial; only then sweep-rank is needed (and where nodes are screened).
bool has_built_in_steps(std::span<const PlanEntry>);

// The limits of a launcher as the run loop takes them.
run::Bounds bounds_of(const launch::RunLimits&);

// Sets what the launcher decides of the settings and gives its maker. Errors: programs that are missing,
// settings that no launcher takes.
Expected<run::MakeLauncher> prepare_launcher(const LaunchChoice&, const LaunchRequest&,
                                             std::span<const PlanEntry>, run::Settings&);

// The smaller one of those that are set.
std::optional<double> smaller_limit(std::optional<double> one, std::optional<double> other);

// Catalogue names of what admitted trials run on.
std::set<std::string> hardware_of(std::span<const PlanEntry>);

}  // namespace sweep::driver
