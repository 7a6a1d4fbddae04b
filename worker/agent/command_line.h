// The command line of sweep-agent. It is a part of the room, whose headers take longer to read than to compile.
#pragma once

namespace sweep::agent {

// Gives the exit code.
int run_command_line(int argc, char** argv);

}  // namespace sweep::agent
