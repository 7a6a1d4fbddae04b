// The batch script of one allocation of Grid Engine: directives, prologue, and the agent. Grid Engine warns a
// job with SIGUSR2 before it ends it; the script passes that on as SIGTERM, which the agent understands. Pure
// text.
#pragma once
#include <string>

#include "orchestrator/launch/launcher.h"
#include "orchestrator/launch/programs.h"
#include "schema/launch_settings.h"

namespace sweep::launch {

// Error: the allocation has several nodes, or a path or setting has a control character.
Expected<std::string> gridengine_script(const AllocationRequest&, const GridEngineSettings&, const Programs&);

}  // namespace sweep::launch
