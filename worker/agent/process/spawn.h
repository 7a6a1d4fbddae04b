// Spawning: the few ways in which the agent makes a child, all of them dying with it, none inheriting its
// files.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/expected.h"

namespace sweep::agent {

struct Spawn {
  std::vector<std::string> argv;  // argv[0]: absolute path of the program
  std::string token;              // value of SWEEP_ATTEMPT (schema/attempt_token.h); empty: not set
  int input = -1;                 // becomes standard input; -1: the agent's own
  int channel = -1;               // becomes file descriptor 3; -1: none
  std::string log;                // stdout and stderr are appended there; empty: the agent's own
  pid_t group = -1;               // process group to join; 0: a new one; -1: the agent's
};

// Forks and executes; an exec that fails is an error that says why.
Expected<pid_t> spawn(const Spawn&);

// An anchor: a child that only sleeps, ignores SIGTERM and leads a new process group. As long as it is not
// reaped, its group exists and the number of the group belongs to no other process.
Expected<pid_t> spawn_anchor();

}  // namespace sweep::agent
