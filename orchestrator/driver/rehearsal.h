// Rehearsals: the trials of a grid run on phantom GPUs of this machine. Their results are kept in a sweep of
// their own.
#pragma once
#include <string>
#include <vector>

#include "orchestrator/driver/launchers.h"
#include "orchestrator/driver/planning.h"

namespace sweep::driver {

// A rehearsal measures the same thing at every step, so a few of them are enough. Commands keep the grid's plan.
inline constexpr MeasurePlan kRehearsalMeasure{2, 2, 1};

// Turns a plan into its rehearsal: the name, the measuring plan, and trials pruned that cannot be rehearsed
// (`hardware: cpu`, too many stages). Error: no trial is left.
Expected<void> make_rehearsal(Planned&, i64 most_ranks);

// Error: this machine cannot rehearse these trials with so many ranks each.
Expected<LaunchChoice> rehearsal_choice(const LaunchRequest&, std::span<const PlanEntry>, i64 ranks);

}  // namespace sweep::driver
