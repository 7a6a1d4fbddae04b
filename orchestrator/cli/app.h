// The command line: one table of commands and options; parser, help, completion and manual page all come from
// it.
#pragma once

namespace CLI {
class App;
}

namespace sweep::cli {

// Exit codes: 0 every trial has a final answer, 1 any other outcome, 2 bad input, 130 interrupted.
int run(int argc, char** argv);

}  // namespace sweep::cli
