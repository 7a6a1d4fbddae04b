// Planning: from a grid file to a decided plan, and what it is predicted to cost.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/driver/holder.h"
#include "orchestrator/grid/grid.h"
#include "orchestrator/plan/planner.h"

namespace sweep::driver {

struct Planned {
  grid::Grid grid;
  grid::ExpandCounts counts;
  std::vector<PlanEntry> entries;  // decided, in grid order; PlanEntry::order tells the run order
  std::vector<std::string>
      times_from{};  // a sentence for each hardware: by which figures its times are predicted
  std::vector<std::string>
      corrected{};  // a sentence for each kind of trial whose times the results of the database correct
  std::vector<std::string>
      notes{};  // sentences: hardware that no build of the step runs on, axes left to a program
  std::vector<std::string> suggested{};  // sentences: values of earlier results, and which
  bool suggested_again = false;          // `suggested` are the values that the stored sweep has
  plan::LeftToProgram left{};
};

// Reads, expands and decides, by the hardware profiles of calibration_db(). `db`: results that correct predicted
// times (earlier_results.h); empty: none. `say` hears how far a large grid is. `suggested_by`: the database whose results give
// what the grid leaves unset (earlier_results.h).
Expected<Planned> make_plan(const std::string& grid_file, std::uint64_t max_points, const std::string& db,
                            const Say& say, const std::optional<std::string>& suggested_by = {});

// The same of a grid that was read.
Expected<Planned> plan_of(
    grid::Grid, const std::string& db = {}, const Say& say = [](const std::string&) {});

// Keeps what was suggested as an event of the sweep, unless the sweep had it.
Expected<void> keep_suggested(store::Store&, i64 sweep, const Planned&);

// Prunes what this machine cannot hold. make_plan() and plan_of() plan for any machine.
void prune_beyond(Planned&, const plan::Resources& here);

// GPU-hours of the admitted trials, one after another; those without a prediction count nothing.
double predicted_gpu_hours(const std::vector<PlanEntry>&);

// Their cost, in whole nodes, at these prices (by hardware), else the catalogue's; nullopt: some have no
// price.
std::optional<double> predicted_usd(const std::vector<PlanEntry>&,
                                    const std::map<std::string, double>& usd_per_node_hour);
// GPU-hours that this budget buys, by the most expensive GPU-hour of the trials. A node is paid whole; counted are the
// GPUs that an allocation has of it: those of its trials, or all (whole_node). Error: some trials have no price.
Expected<double> gpu_hours_for(double usd, const std::vector<PlanEntry>&,
                               const std::map<std::string, double>& usd_per_node_hour, bool whole_node);
// The prices, a sentence each, with their dates.
std::vector<std::string> prices_of(const std::vector<PlanEntry>&,
                                   const std::map<std::string, double>& usd_per_node_hour);

// A sentence: "31 trials: 28 admitted, 3 pruned (divisibility 2, memory 1); 4 points dropped by where".
std::string summary(const Planned&);

}  // namespace sweep::driver
