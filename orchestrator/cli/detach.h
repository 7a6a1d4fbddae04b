// Detach: runs this very command again in a session of its own, which outlives the terminal.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/cli/command.h"

namespace sweep::cli {

// The words without a flag, as --flag and as --flag=VALUE.
std::vector<std::string> without_flag(std::vector<std::string> words, const std::string& flag);

// Starts the command line of this process less `flag` and with `more`, its words going to `log`, and waits
// until a process holds the lease of the sweep (its name) or the process has ended. The exit code of this
// command.
int detach(Io&, const std::string& flag, const SweepSelector& db, const std::string& sweep,
           const std::filesystem::path& log, const std::vector<std::string>& more = {});

}  // namespace sweep::cli
