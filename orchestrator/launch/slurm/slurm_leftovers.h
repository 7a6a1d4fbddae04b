// Leftovers of ended runs in Slurm: jobs by their names, and the records of allocations whose job is over.
#pragma once
#include "orchestrator/launch/launch_config.h"

namespace sweep::launch {

// Error: Slurm does not answer.
Expected<std::unique_ptr<Leftovers>> slurm_leftovers(std::span<const AllocationPlace>);

}  // namespace sweep::launch
