// The parts of `sweep run` for strategies: options and messages.
#pragma once
#include <optional>

#include "orchestrator/cli/command.h"
#include "orchestrator/driver/planning.h"
#include "orchestrator/driver/strategy_choice.h"

namespace sweep::cli {

struct StrategyFlags {
  driver::StrategyRequest wanted;
  std::optional<double> usd;
  bool reuse = false;
};
void add_strategy_options(CLI::App&, StrategyFlags&);

// The most trials that this strategy still runs of a plan, after what the database has answered of the sweep.
search::Most most_left(const std::vector<PlanEntry>&, const Strategy&, const SweepSelector&);

// Says which one it is, and takes over answers where that is asked for. REQUIRES the lease and a stored plan.
Expected<void> begin_strategy(Io&, driver::SweepDriver&, const grid::Grid&, const driver::LaunchChoice&,
                              const StrategyFlags&);

// --suggested, and the values that it took.
void add_suggested(CLI::App& command, bool&);
void say_suggested(Io&, const driver::Planned&);

// Says what makes new results differ from those the sweep has.
void say_changes(Io&, const store::SweepRow& before, const MeasurePlan* measure);

}  // namespace sweep::cli
