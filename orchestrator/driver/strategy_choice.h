// The strategy of a run: the grid's and what a command line says of it brought together, and what earlier answers leave it
// to do.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/driver/sweep_driver.h"
#include "orchestrator/grid/grid.h"
#include "orchestrator/search/candidate.h"
#include "schema/strategy.h"

namespace sweep::driver {

struct StrategyRequest {
  std::optional<StrategyKind> kind;  // nullopt: the grid's
  std::optional<i64> max_trials;
  std::optional<double> audit;  // a share; nullopt: none
  bool rehearses = false;       // the run is on phantom GPUs
};

// The request's, else the grid's; nullopt: neither states one. A rehearsal asks of every trial whether it starts and fits,
// unless micro-batch sizes are looked for (`auto`, or `batch`): those it looks for too.
std::optional<sweep::Strategy> chosen_strategy(const grid::Grid&, const StrategyRequest&);

// Error: the strategy can decide nothing here, or the request bounds what it does not bound.
Expected<void> can_decide(const sweep::Strategy&, const StrategyRequest&);

// Trials that the sweep has answered: measured ones; with the same strategy as then also those that it left out.
Expected<std::set<std::string>> answered_trials(store::Store&, const store::SweepRow&,
                                                const sweep::Strategy&);
// The most trials that this strategy still runs of a plan.
search::Most most_left(const std::vector<PlanEntry>&, const sweep::Strategy&,
                       const std::set<std::string>& answered);

// Takes over answers of earlier sweeps, keeps an event of the sweep about it, and says how many. REQUIRES the lease and a
// stored plan.
Expected<std::string> reuse_answers(SweepDriver&, const LaunchChoice&);

// The reasons why new results differ from those that the sweep has, a sentence each: another build, another measuring plan, a grid
// file that was edited. `measure`: the plan of the grid that is run; null: the sweep is resumed.
std::vector<std::string> changes_since(const store::SweepRow& before, const MeasurePlan* measure);

}  // namespace sweep::driver
