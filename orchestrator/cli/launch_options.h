// Options of the commands that run trials; how a run ended, what to type next, and the exit code.
#pragma once
#include <string>

#include "orchestrator/cli/command.h"
#include "orchestrator/driver/selftest.h"
#include "orchestrator/driver/sweep_driver.h"

namespace sweep::cli {

// --on, with the names of all launchers.
CLI::Option* add_launcher_name(CLI::App& command, std::string& on, const std::string& description);
// --agent and --rank.
void add_programs(CLI::App& command, driver::LaunchRequest&);
// The end of an option's help: what is taken where it is absent; empty: nothing is said. kept: `resume` takes it from the
// run (driver::with_kept).
std::string absent(bool kept, const std::string& otherwise = {});
// --start; kept: of a command that takes it from the run.
void add_rank_start(CLI::App& command, driver::LaunchRequest&, bool kept = false);
// The options for where selftest and doctor run their trials.
void add_selftest_options(CLI::App& command, driver::SelfTestRequest&);

int exit_code_of(driver::Finish);

// Says how a run ended, and in its last line what to type next. The exit code of the command.
int finish(Io&, driver::SweepDriver&, const run::RunEnd&);

}  // namespace sweep::cli
