// How much a strategy runs at most, and how long that takes.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/run/observer.h"
#include "orchestrator/search/candidate.h"
#include "orchestrator/store/store.h"
#include "schema/strategy.h"

namespace sweep::driver {

// A sentence on what it runs.
std::string strategy_sentence(const sweep::Strategy&);
// The most of the admitted trials that this strategy runs, and their GPU-hours.
search::Most most_run(const std::vector<PlanEntry>&, const sweep::Strategy&);

// Seconds until every trial has run; nullopt: not known. Predictions are of real GPUs: only rehearsals that have ended say
// how long one takes.
std::optional<double> seconds_of_all(const store::SweepRow&, const run::Snapshot&);
// The time left of a sweep by its strategy: Snapshot::seconds_left counts every trial that waits.
Expected<std::optional<double>> seconds_left(store::Store&, const store::SweepRow&, const run::Snapshot&);

}  // namespace sweep::driver
