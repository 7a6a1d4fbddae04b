// Reads what Grid Engine says of jobs, the XML of qstat and the lines of qacct: every combination of state letters has a
// phase, and every end a cause (job_phase.h). Pure; from an answer that cannot be read nothing is concluded.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/launch/batch/scheduler.h"

namespace sweep::launch {

struct GridEngineJob {
  i64 number = 0;
  std::string name, state, host;     // state: letters as in qstat(1): "qw", "r", "dr"
  std::optional<double> run_unix_s;  // since when it runs
  std::optional<double> limit_s;     // h_rt
};

// Pending, running, suspended and finished jobs of one user, with UTC times.
std::vector<std::string> qstat_of_user(const std::string& user);
// Error: it is no answer of qstat.
Expected<std::vector<GridEngineJob>> read_qstat(std::string_view xml);
Phase phase_of(std::string_view state);
// now_unix_s: of this machine's clock, for the time that the job has left.
JobStatus status_of(const GridEngineJob&, double now_unix_s);

// The end of a job in the accounting file, by its number; nullopt: the file has none of this number and name.
std::optional<JobStatus> read_qacct(std::string_view answer, const std::string& name);

// The job's number in the answer of `qsub -terse`.
std::optional<i64> read_qsub(std::string_view answer);
// qsub did not reach the master, so that it is not known whether the job was taken.
bool is_master_away(std::string_view error);
// The reason that qsub, qdel or qstat gives for a failure, in one line.
std::string gridengine_reason(std::string_view error);
bool is_unknown_job(std::string_view error);

}  // namespace sweep::launch
