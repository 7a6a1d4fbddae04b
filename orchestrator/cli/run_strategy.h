// The parts of `sweep run` for strategies: options, messages, and answers taken over from earlier sweeps.
#pragma once
#include <optional>
#include <string>

#include "orchestrator/cli/command.h"
#include "orchestrator/driver/planning.h"
#include "orchestrator/driver/strategy_forecast.h"
#include "orchestrator/driver/sweep_driver.h"
#include "orchestrator/grid/grid.h"
#include "schema/strategy.h"

namespace sweep::cli {

struct StrategyFlags {
  std::string kind;  // empty: the grid's
  std::optional<i64> max_trials;
  std::optional<double> usd;
  std::string audit;  // a share; empty: none
  bool reuse = false;
  bool rehearses = false;  // the run is on phantom GPUs
};
void add_strategy_options(CLI::App&, StrategyFlags&);

// The command line's, else the grid's; nullopt: neither states one. A rehearsal asks of every trial whether
// it starts and fits, unless micro-batch sizes are looked for (`auto`, or `batch`): those it looks for too.
std::optional<Strategy> chosen_strategy(const grid::Grid&, const StrategyFlags&);

// Error: the strategy can decide nothing here, or an option bounds what it does not bound.
Expected<void> can_decide(const Strategy&, const StrategyFlags&);

// The most trials that this strategy still runs of a plan, after what the database has answered of the sweep.
search::Most most_left(const std::vector<PlanEntry>&, const Strategy&, const std::string& db,
                       const std::string& sweep);

// Says which one it is, and takes over answers where that is asked for. REQUIRES the lease and a stored plan.
Expected<void> begin_strategy(Io&, driver::SweepDriver&, const grid::Grid&, const driver::LaunchChoice&,
                              const StrategyFlags&);

// --suggested, and the values that it took: said, and kept as an event of the sweep unless the sweep had them.
void add_suggested(CLI::App& command, bool&);
void say_suggested(Io&, const driver::Planned&);
Expected<void> keep_suggested(driver::SweepDriver&, const driver::Planned&);

// Says what makes new results differ from those the sweep has: another build, another measuring plan.
void say_changes(Io&, const store::SweepRow& before, const MeasurePlan* measure);

}  // namespace sweep::cli
