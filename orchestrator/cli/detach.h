// Detach: runs this very command again in a session of its own, which outlives the terminal.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/cli/command.h"

namespace sweep::cli {

// The words of a command without --detach, in any form, and with `more` options.
std::vector<std::string> detached_words(std::vector<std::string> words, const std::vector<std::string>& more);

// Starts the command line of this process less --detach and with `more` options, its words going to `log`, and waits
// until a process holds the lease of the sweep (its name) or the process has ended. The exit code of this
// command.
int detach(Io&, const SweepSelector& db, const std::string& sweep, const std::filesystem::path& log,
           const std::vector<std::string>& more = {});

}  // namespace sweep::cli
