// One query about several jobs, put to Slurm in rounds. squeue is asked about all of them; sacct, where there is
// accounting, about those that squeue does not list; scontrol, one by one, about those whose number is known. Only a
// denial by number is a fact. Steps of an existing job are looked for in squeue alone.
#pragma once
#include "orchestrator/launch/batch/scheduler.h"
#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/slurm/slurm_state.h"

namespace sweep::launch {

// Seconds that one command may take.
inline constexpr double kSlurmAnswerLimit = 60;

JobStatus status_of(const JobFacts&);

// State that later queries keep from earlier ones.
struct SlurmQueryMemory {
  bool no_accounting = false;
  // The job with which the next query by number begins.
  std::size_t turn = 0;
};

// Both end with the Commands, which they use like the memory.
awaitable<Expected<QueryAnswer>> query_jobs(Commands&, SlurmQueryMemory&, std::vector<JobKey>,
                                            Scheduler::Counted);
awaitable<Expected<QueryAnswer>> query_steps(Commands&, i64 existing_job, std::vector<JobKey>,
                                             Scheduler::Counted);

// Whether a job that we did not submit has ended or is no longer known. Waits for squeue. Error: no clear answer.
Expected<bool> slurm_job_is_over(i64 job);

}  // namespace sweep::launch
