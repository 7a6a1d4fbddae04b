// The decisions and messages of `sweep plan` and `sweep run` about memory: pruning by the grid's margin, dry
// runs of what lies near the limit, and one trial's memory by pipeline stage and part.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "orchestrator/cli/command.h"
#include "orchestrator/driver/planning.h"

namespace sweep::cli {

// Prunes by memory; with dry_run what lies within the margin is asked of the step first (progress goes to
// err).
Expected<void> prune_memory(Io&, driver::Planned&, bool dry_run);
// "memory: as sweep's own step allocates it ...": which profile, margin, and how many lie near the limit;
// empty: no limit.
std::string memory_summary(const driver::Planned&, bool dry_run);
// A table of the trial whose id begins so.
Expected<void> print_memory(Io&, const driver::Planned&, const std::string& id);
// {"fullest_stage", "limit_bytes", "parts": {...}} of a trial of the built-in step; else null.
nlohmann::json memory_json(const PlanEntry&);

}  // namespace sweep::cli
