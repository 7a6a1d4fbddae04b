// Before the first trial of a node, a run compares the GPUs of the node with the hardware that the trials
// declare.
#pragma once
#include <vector>

#include "orchestrator/run/run_sweep.h"
#include "schema/plan_entry.h"

namespace sweep::driver {

run::JudgeNode node_judge(const std::vector<PlanEntry>&);

}  // namespace sweep::driver
