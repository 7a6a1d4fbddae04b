// JobEnd: whether the job that another process was part of is over, according to Slurm.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "orchestrator/launch/commands.h"
#include "schema/trial.h"

namespace sweep::launch {

enum class JobEnd {
  kUnknown,  // Slurm does not answer, or is another cluster
  kAlive,    // it runs, or its processes are about to end
  kOver,     // it has ended, and Slurm has seen its processes end
  kLost,  // it is over, but its processes may live: its node failed, it was put back into the queue, or Slurm has
  // forgotten it
};

using AskSlurm = std::function<CommandResult(std::vector<std::string> words)>;
// cluster: the one that the job belongs to. Another cluster has other jobs under the same numbers.
JobEnd end_of_job(i64 job, const std::string& cluster, const AskSlurm& ask);

}  // namespace sweep::launch
