// The orchestrator of a stored sweep as a small Slurm job, for clusters whose login nodes end what runs for
// long.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "orchestrator/driver/launchers.h"

namespace sweep::driver {

struct OrchestratorJobRequest {
  std::string partition;
  std::filesystem::path db;
  std::string sweep;
  // Further words of `sweep resume` in the job.
  std::vector<std::string> words;
};

// The words that make `sweep resume` in a job start trials as this request does.
std::vector<std::string> launch_words(const LaunchChoice&, const LaunchRequest&);

// The job that `--as-job` hands the sweep to.
struct SubmittedJob {
  i64 number = 0;
  bool was_there = false;     // a job of this sweep waits or runs already
  std::string state;          // Slurm's word for the state of a job that was there
  std::filesystem::path log;  // log of a new job
};

// Error: the launcher's trials would run in the job, or that is no name of a partition.
Expected<void> fits_a_job(const std::string& partition, const LaunchChoice&);

// Why Slurm has not got the job.
struct SubmitError {
  bool refused = false;  // Slurm was asked and did not take the script
  Error error;
};
// Submits the job that resumes the sweep, unless one of it waits or runs already. REQUIRES: no process holds
// the lease.
tl::expected<SubmittedJob, SubmitError> submit_orchestrator(const OrchestratorJobRequest&,
                                                            const LaunchChoice&);

// The orchestrators of these sweeps that wait in Slurm's queue or run: their numbers by sweep. Slurm is asked once.
using OrchestratorJobs = std::map<std::string, i64>;
Expected<OrchestratorJobs> living_orchestrator_jobs(const std::filesystem::path& db,
                                                    const std::vector<std::string>& sweeps);
// Cancels the sweep's orchestrator while it waits in Slurm's queue. Returns its number; nullopt: there was
// none.
Expected<std::optional<i64>> cancel_waiting_job(const std::filesystem::path& db, const std::string& sweep);

}  // namespace sweep::driver
