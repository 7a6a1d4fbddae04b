// A child in a session of its own (a terminal's Ctrl-C is for us alone) that inherits none of our files, signal masks or
// handlers, only the three descriptors it is given.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

namespace sweep::launch {

struct DetachedChild {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH unless it names a folder
  int in = -1, out = -1, err = -1;
  // Instead of ours; empty: ours.
  std::vector<std::string> environment{};
};

// 0, or the error's number.
int spawn_detached(pid_t& pid, DetachedChild child);

}  // namespace sweep::launch
