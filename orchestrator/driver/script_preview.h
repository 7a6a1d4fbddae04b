// The batch scripts that a plan would submit first, exactly as they would be, and what the scheduler answers
// to each. Nothing is submitted.
#pragma once
#include <filesystem>
#include <span>
#include <vector>

#include "orchestrator/driver/launchers.h"

namespace sweep::driver {

// Error: settings that no run takes, or nothing of the plan fits
// them.
Expected<std::vector<launch::Preview>> preview_scripts(std::span<const PlanEntry>, const LaunchSettings&,
                                                       const std::filesystem::path& db);

// The demand of this plan's pending trials, counted like in a run.
Expected<std::vector<store::Demand>> demand_of(std::span<const PlanEntry>);

}  // namespace sweep::driver
