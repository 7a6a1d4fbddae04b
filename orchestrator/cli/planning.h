// From a grid file to a decided plan: what `plan`, `run` and `explain` share.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/cli/command.h"
#include "orchestrator/grid/grid.h"
#include "orchestrator/plan/planner.h"

namespace sweep::cli {

struct Planned {
  grid::Grid grid;
  grid::ExpandCounts counts;
  std::vector<PlanEntry> entries;  // decided, in grid order; PlanEntry::order tells the run order
};

// Reads, expands and decides. `here` adds what only this machine can tell (absent: plan for any machine).
Expected<Planned> make_plan(const std::string& grid_file, std::uint64_t max_points,
                            const std::optional<plan::Resources>& here);

i64 cpu_cores();

// CPU ranks may share cores (they time-share, and their times say little): up to this many on each.
inline constexpr i64 kCpuOversubscription = 8;

// Catalogue names of what admitted trials run on.
std::set<std::string> hardware_of(const std::vector<PlanEntry>&);

// What this machine offers to local runs.
plan::Resources local_resources();

// Of admitted trials, one after another; those without a prediction count nothing.
double predicted_gpu_hours(const std::vector<PlanEntry>&);

// What they cost so, in whole nodes, at these prices (by hardware), else the catalogue's; absent: some have none.
std::optional<double> predicted_usd(const std::vector<PlanEntry>&,
                                    const std::map<std::string, double>& usd_per_node_hour);
// Those prices, a sentence each, with their dates.
std::vector<std::string> prices_of(const std::vector<PlanEntry>&,
                                   const std::map<std::string, double>& usd_per_node_hour);

// A sentence: "31 trials: 28 admitted, 3 pruned (divisibility 2, memory 1); 4 points dropped by where".
std::string summary(const Planned&);

}  // namespace sweep::cli
