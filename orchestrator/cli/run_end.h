// sweep run, resume and watching: how a run ended, and what to type next.
#pragma once
#include "orchestrator/cli/command.h"
#include "orchestrator/driver/sweep_driver.h"

namespace sweep::cli {

// Says how a run ended, and in its last line what to type next. The exit code of the command.
int finish(Io&, driver::SweepDriver&, const run::RunEnd&);

}  // namespace sweep::cli
