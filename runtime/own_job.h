// OwnJob: the Slurm job that this process is part of, as its environment says. A shell of salloc on a login
// node is part of none: its processes outlive the allocation.
#pragma once
#include <optional>
#include <string>

#include "schema/trial.h"

namespace sweep {

// JOB@CLUSTER, set by the script of `sweep run --as-job`, which hides Slurm's own variables from what it
// starts.
inline constexpr const char* kOrchestratorJobVariable = "SWEEP_ORCHESTRATOR_JOB";

struct OwnJob {
  i64 id = 0;
  std::string cluster;           // empty: not known
  bool is_orchestrator = false;  // made by --as-job: Slurm ends it, people use `sweep stop`
};

using ReadVariable = const char* (*)(const char* name);
std::optional<OwnJob> own_job(ReadVariable);
std::optional<OwnJob> own_job();

}  // namespace sweep
