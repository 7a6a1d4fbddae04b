// The command line of sweep-rank.
#pragma once

namespace sweep::rank {

// Runs the subcommand that is asked for; the exit code. 2: bad input.
int run_command_line(int argc, char** argv);

}  // namespace sweep::rank
