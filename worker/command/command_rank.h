// A rank whose training step is another program: it starts the program (one process for each rank, or one for
// each node), follows what it reports and how it ends, and leaves the same record as any rank. The agent
// watches and ends it like any rank: the program is its child and carries the attempt's mark.
#pragma once
#include "schema/rank_launch.h"

namespace sweep::command {

// `sweep-agent command --launch JSON`. The exit code is that of schema/rank_launch.h.
// If a signal killed the program, this process ends by the same signal, so that the agent can tell an OOM
// kill.
int run_command_rank(const RankLaunch&);

}  // namespace sweep::command
