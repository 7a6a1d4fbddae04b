// SlurmConfig: the launcher `slurm`: jobs of its own, or steps of a job that runs already.
#pragma once
#include "orchestrator/launch/launch_config.h"
#include "orchestrator/launch/slurm/slurm_options.h"

namespace sweep::launch {

// Number of the job that this process runs in, by its environment; 0: none.
i64 surrounding_slurm_job();

// The checks of `sweep doctor --on slurm`, in the order in which a run would fail.
std::vector<Finding> check_slurm(const SlurmOptions&, const CheckRequest&);
// The same of the part of a cluster that one run uses: its partitions. Sets what bounds a run. Error: `time`
// is longer than a partition allows.
Expected<void> read_partitions(SlurmOptions&);
// The answer of `sbatch --test-only` to a script. Error: it could not be written.
Expected<Preview> test_submission(std::string script);
// Leftovers of ended runs in Slurm: jobs by their names, and the records of allocations whose job is over. Error:
// Slurm does not answer.
Expected<std::unique_ptr<Leftovers>> slurm_leftovers(std::span<const AllocationPlace>);

}  // namespace sweep::launch
