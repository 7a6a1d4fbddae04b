// SlurmScheduler: Slurm behind the Scheduler interface: sbatch (or srun, for steps of an existing job), scancel, and
// queries in three rounds: squeue about all jobs; sacct, where there is accounting, about those that squeue does not
// list; scontrol, one by one, about those whose number is known. Only a denial by number is a fact.
#pragma once
#include <map>
#include <memory>

#include "orchestrator/launch/batch/scheduler.h"
#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/slurm/slurm_options.h"
#include "orchestrator/launch/slurm/slurm_script.h"
#include "orchestrator/launch/slurm/slurm_state.h"

namespace sweep::launch {

JobStatus status_of(const JobFacts&);

class SlurmScheduler final : public Scheduler {
 public:
  SlurmScheduler(std::unique_ptr<Commands> commands, SlurmOptions options, Programs programs);

  std::string_view name() const override { return "Slurm"; }
  std::string_view record() const override { return "slurm"; }
  std::string job_name(const AllocationId& id) const override { return slurm_job_name(id); }

  Expected<void> prepare(const AllocationRequest&) override;
  void submit(const AllocationRequest&, Submitted) override;
  void cancel(const JobKey&, std::function<void(bool worked)> done) override;
  void query(const std::vector<JobKey>&, const Counted&, Queried) override;

  std::optional<i64> existing_job() const override;
  std::optional<double> longest_wait_s() const override { return options_.pending_s; }
  std::optional<double> usable_s(const AllocationRequest&, std::optional<double> left) const override;

  void count_idle(const Counted&, std::function<void(bool counted)> done) override;
  i64 idle_nodes(const std::string& hardware) const override;

 private:
  void submit_step(const AllocationRequest&, Submitted);
  void cancel_step(const JobKey&, std::function<void(bool worked)> done);
  void ask(std::vector<std::string> words, Commands::Answer);
  void query_existing_job();
  void read_existing_job(const std::vector<JobFacts>&, const std::vector<StepFacts>&);
  void note(const std::vector<JobFacts>&);
  std::vector<JobKey> unlisted() const;
  void confirm_missing();
  void confirm_next(std::vector<JobKey> rest);
  void failed(const CommandResult&);
  void answered();

  std::unique_ptr<Commands> commands_;
  const SlurmOptions options_;
  const Programs programs_;
  // Of the query under way.
  std::vector<JobKey> jobs_;
  Counted counted_;
  Queried queried_;
  QueryAnswer answer_;

  bool no_accounting_ = false;
  // Where the next query begins with its questions by number.
  std::size_t turn_ = 0;
  // Nodes by partition, when they were counted last.
  std::map<std::string, i64> idle_;
  double idle_asked_s_;
};

}  // namespace sweep::launch
