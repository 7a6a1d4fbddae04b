// SlurmQuery: one question about several jobs, put to Slurm in rounds. squeue is asked about all of them;
// sacct, where there is accounting, about those that squeue does not list; scontrol, one by one, about those
// whose number is known. Only a denial by number is a fact. Steps of an existing job are looked for in squeue
// alone. The object lives until its answer is given.
#pragma once
#include <memory>

#include "orchestrator/launch/batch/scheduler.h"
#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/slurm/slurm_state.h"

namespace sweep::launch {

// Seconds that one command may take.
inline constexpr double kSlurmAnswerLimit = 60;

JobStatus status_of(const JobFacts&);

// What later queries know from earlier ones.
struct SlurmQueryMemory {
  bool no_accounting = false;
  // Where the next query begins with its questions by number.
  std::size_t turn = 0;
};

class SlurmQuery : public std::enable_shared_from_this<SlurmQuery> {
 public:
  // REQUIRES: commands and memory outlive the answer.
  SlurmQuery(Commands& commands, SlurmQueryMemory& memory, std::vector<JobKey> jobs,
             Scheduler::Counted counted, Scheduler::Queried done);

  void ask_about_jobs();
  void ask_about_steps(i64 existing_job);

 private:
  void ask(std::vector<std::string> words, Commands::Answer);
  void read_steps_of(const std::vector<JobFacts>& job, const std::vector<StepFacts>& steps);
  void note(const std::vector<JobFacts>&);
  std::vector<JobKey> unlisted() const;
  void confirm_missing();
  void confirm_next(std::vector<JobKey> rest);
  void failed(const CommandResult&);
  void answered();

  Commands& commands_;
  SlurmQueryMemory& memory_;
  const std::vector<JobKey> jobs_;
  const Scheduler::Counted counted_;
  const Scheduler::Queried done_;
  QueryAnswer answer_;
};

}  // namespace sweep::launch
