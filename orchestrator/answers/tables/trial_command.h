// The command line that a trial of a workload runs, for people.
#pragma once
#include <string>
#include <vector>

#include "schema/plan_entry.h"

namespace sweep::answers {

// Variables and words as a shell would take them; empty: the trial runs no command.
std::string command_of(const PlanEntry&);
// Of the first admitted trial in the run order, with its id; empty: no trial runs a command.
std::string first_command(const std::vector<PlanEntry>&);

}  // namespace sweep::answers
