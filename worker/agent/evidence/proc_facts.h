// Reads what /proc says of a process by its pid as seen from the agent, also if /proc shows another PID
// namespace.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "schema/records.h"

namespace sweep::agent {

struct ChildProcess {
  pid_t pid = 0;
  char state = '?';
  std::string command;
};
// Live children of this process, adopted ones included; zombies left out.
std::vector<ChildProcess> children();

// The name under which this /proc lists a pid of ours; empty: it does not. In a PID namespace it looks through all of
// /proc.
std::string entry_of(pid_t pid);

// State, wait channel, kernel stack and system call of a process, as far as they are readable: evidence of a
// hang.
std::optional<ProcessPlace> where_it_is(pid_t pid);

}  // namespace sweep::agent
