// The batch scripts a plan would submit first, exactly as they would be, and what sbatch says of each.
#pragma once
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/planning.h"
#include "orchestrator/launch/commands.h"

namespace sweep::cli {

// Scripts to out; what `sbatch --test-only` answers to err. Nothing is submitted.
int show_scripts(Io&, const Planned&, const std::string& db);

// What `sbatch --test-only` answers to a script. An error: it could not be written.
Expected<launch::CommandResult> test_only(const std::string& script);

}  // namespace sweep::cli
