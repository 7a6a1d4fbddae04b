// Reads what Slurm says of jobs: the answers of squeue, sacct and scontrol become JobFacts, in which every state of a
// job has a phase, and every end a cause (JobPhase, job_phase.h). Pure; from an answer that cannot be read nothing is
// concluded.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/launch/batch/job_phase.h"
#include "schema/trial.h"

namespace sweep::launch {

struct Meaning {
  Phase phase = Phase::kUnknown;
  Blame blame = Blame::kNone;
};
// The meaning of a state word as any of the commands writes it: "CANCELLED by 1000", "OUT_OF_ME+" too.
Meaning meaning_of(std::string_view state);

struct JobFacts {
  i64 id = 0;
  std::string name, state, reason, nodes;
  std::optional<double> seconds_left;  // seconds until its time limit
};

// The arguments that make squeue (sacct) say what read_squeue (read_sacct) understands, for exactly these
// names.
std::vector<std::string> squeue_by_name(const std::vector<std::string>& names);
std::vector<std::string> sacct_by_name(const std::vector<std::string>& names);
// The job's number in the answer of `sbatch --parsable`.
std::optional<i64> read_sbatch(std::string_view answer);
std::vector<JobFacts> read_squeue(std::string_view answer);
std::vector<JobFacts> read_sacct(std::string_view answer);
std::optional<JobFacts> read_scontrol(std::string_view answer);  // the answer of `scontrol show job -o ID`

// Queries about a job that we did not name, and about its steps: the facts of each step of the job, by the
// step's name.
std::vector<std::string> squeue_of_job(i64 job);
std::vector<std::string> squeue_of_steps(i64 job);
struct StepFacts {
  std::string id, name;  // "17.0"
};
std::vector<StepFacts> read_steps(std::string_view answer);

// A partition (empty: the default ones) and its nodes, as sinfo counts them.
struct PartitionFacts {
  bool up = false;
  i64 nodes = 0, working = 0;         // working: they will run jobs, now or when those of others have ended
  i64 idle = 0;                       // working, and in no job
  std::string others;                 // "2 drained, 1 down*": those that do not work
  std::optional<double> longest_s{};  // the limit of one job; nullopt: no limit
};
std::vector<std::string> sinfo_of(std::string_view partition);
PartitionFacts read_sinfo(std::string_view answer);
// Idle nodes by partition; the default partition is also "".
std::vector<std::string> sinfo_idle();
std::map<std::string, i64> read_idle(std::string_view answer);

// "HH:MM:SS" or "D-HH:MM:SS", rounded up to a whole minute.
std::string slurm_time(double seconds);

// A reason that will not pass by waiting: the request fits no node, no limit, or is held.
bool is_hopeless(std::string_view pending_reason);
// True for a message of sbatch that the controller could not be asked, rather than refused: the job may have
// been submitted or not.
bool is_in_doubt(std::string_view error);
// Or that this user (account, QOS) has as many jobs as he may: one more will be taken when some have ended.
bool takes_no_more(std::string_view error);
// Its reasons in one line: the first ones say more than "Batch job submission failed".
std::string sbatch_refusal(std::string_view error);

}  // namespace sweep::launch
