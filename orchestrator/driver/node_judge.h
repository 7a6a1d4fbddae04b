// What `sweep run` asks of nodes before their first trial: that their GPUs are those that the trials declare.
#pragma once
#include <vector>

#include "orchestrator/run/run_sweep.h"
#include "schema/plan_entry.h"

namespace sweep::driver {

run::JudgeNode node_judge(const std::vector<PlanEntry>&);

}  // namespace sweep::driver
