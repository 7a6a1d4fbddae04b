// Trials that are not run because of what others showed: stored as pruned, and told to people.
#pragma once
#include <string>
#include <vector>

#include "orchestrator/run/run_context.h"

namespace sweep::run {

// The ids of those that waited, and do not run now.
Expected<std::vector<std::string>> store_ruled_out(const RunContext&, const std::vector<store::NotRun>&);

}  // namespace sweep::run
