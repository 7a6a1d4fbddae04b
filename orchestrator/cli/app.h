// The command line: one table of commands and options; parser, help, completion and manual page all come from
// it.
#pragma once

namespace CLI {
class App;
}

namespace sweep::cli {

// The exit code: one of those in command.h.
int run(int argc, char** argv);

}  // namespace sweep::cli
