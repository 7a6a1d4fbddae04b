// What batch scripts of all schedulers have in common: their first lines, and the call of the agent.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/launch/programs.h"
#include "schema/agent_call.h"

namespace sweep::launch {

// mark: begins a line that the scheduler reads ("#SBATCH", "#$"). A directive is one line: a line break in it
// would start a line of shell, so a control character anywhere is an error.
Expected<std::string> batch_script_head(std::string_view mark, const std::vector<std::string>& directives);

// How the script calls the agent, as far as schedulers do not differ. idle_s: after so long without work it
// ends by itself.
AgentCall batch_agent_call(const AllocationRequest& wanted, const Programs& programs, double idle_s);

}  // namespace sweep::launch
