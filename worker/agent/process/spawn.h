// Spawning: how the agent makes children. Each dies with the agent and inherits none of its files.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/expected.h"
#include "schema/rank_variables.h"

namespace sweep::agent {

struct Spawn {
  // argv[0]: absolute path of the program, unless `own_program`.
  std::vector<std::string> argv;
  // Runs the agent's own program, also when its file was replaced or removed since the agent started; argv[0]
  // is only a name then.
  bool own_program = false;
  // Value of SWEEP_ATTEMPT (runtime/attempt_token.h); empty: not set.
  std::string token;
  // Set beside the agent's own, in the place of those of the same names.
  RankVariables variables = {};
  // Becomes standard input; -1: the agent's.
  int input = -1;
  // Becomes file descriptor 3; -1: none.
  int channel = -1;
  // stdout and stderr are appended there; empty: the agent's.
  std::string log;
  // Process group to join; 0: a new one; -1: the agent's.
  pid_t group = -1;
};

// Forks and executes; an exec that fails is an error that says why.
Expected<pid_t> spawn(const Spawn&);

// A child that only sleeps, ignores SIGTERM and leads a new process group. Until it is reaped, its group
// exists and no other process has the number of the group.
Expected<pid_t> spawn_anchor();

}  // namespace sweep::agent
