// Options of the commands that run trials, and the exit code of a run.
#pragma once
#include <string>

#include "orchestrator/cli/command.h"
#include "orchestrator/driver/selftest.h"

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

}  // namespace sweep::cli
