// Rehearsals: the trials of a grid run on phantom GPUs of this machine. Their results are kept in a sweep of
// their own.
#pragma once
#include <filesystem>
#include <vector>

#include "orchestrator/driver/launchers.h"
#include "orchestrator/driver/planning.h"

namespace sweep::driver {

// Folders in shared memory that rehearsals of this user left when they were killed. The next rehearsal removes them too.
std::vector<std::filesystem::path> folders_of_killed_rehearsals();

// Turns a plan into its rehearsal: the name, the measuring plan, and trials pruned that cannot be rehearsed
// (`hardware: cpu`, too many stages). Error: no trial is left.
Expected<void> make_rehearsal(Planned&, i64 most_ranks);

// Error: this machine cannot rehearse these trials with so many ranks each.
Expected<LaunchChoice> rehearsal_choice(const LaunchRequest&, std::span<const PlanEntry>, i64 ranks);

}  // namespace sweep::driver
