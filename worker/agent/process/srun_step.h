// The step of a Slurm job that starts the agents of its other nodes.
#pragma once
#include <sys/types.h>

#include <filesystem>

#include "base/expected.h"
#include "schema/records.h"
#include "worker/agent/options.h"

namespace sweep::agent {

// Starts srun with one task on each node but the first. where_to_join (address, port, token) goes to every
// task's standard input. The child is srun: it ends with the last task.
Expected<pid_t> start_srun_step(const Options& options, const JoinLine& where_to_join);

// The program that the tasks run: where `self` (/proc/self/exe) leads. Where that file was replaced since the
// start, as by a build, it is a copy in the spool, which every node sees: all agents are of one build.
Expected<std::filesystem::path> program_for_peers(const std::filesystem::path& self,
                                                  const std::filesystem::path& spool);

}  // namespace sweep::agent
