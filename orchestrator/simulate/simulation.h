// Simulation: a plan that the real run loop runs on a simulated clock and cluster. It predicts how long a
// sweep would take and where its node time would go. It owns a temporary database.
#pragma once
#include <filesystem>
#include <span>

#include "base/expected.h"
#include "orchestrator/simulate/account.h"
#include "schema/attempt.h"
#include "schema/plan_entry.h"

namespace sweep::simulate {

// `scratch`: an empty folder for the database; its owner removes it.
Expected<Forecast> simulate(std::span<const PlanEntry> plan, const MeasurePlan&, const Assumptions&,
                            const std::filesystem::path& scratch);

}  // namespace sweep::simulate
