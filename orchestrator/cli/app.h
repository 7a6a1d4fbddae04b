// The command line: one table of commands and options; parser, help, completion and manual page all come from
// it.
#pragma once

#include <span>
#include <string>

namespace sweep::cli {

struct Io;

// The exit code: one of those in command.h.
int run(int argc, char** argv);
// The same on these streams, in a program that goes on afterwards. `words` begin with the command.
int run(Io&, std::span<const std::string> words);

}  // namespace sweep::cli
