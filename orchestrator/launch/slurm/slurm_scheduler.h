// SlurmScheduler: Slurm behind the Scheduler interface: sbatch (or srun, for steps of an existing job),
// scancel, and queries (slurm_query.h).
#pragma once
#include <map>
#include <memory>

#include "orchestrator/launch/batch/batch_script.h"
#include "orchestrator/launch/batch/scheduler.h"
#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/slurm/slurm_options.h"
#include "orchestrator/launch/slurm/slurm_query.h"
#include "orchestrator/launch/slurm/slurm_script.h"

namespace sweep::launch {

class SlurmScheduler final : public Scheduler {
 public:
  SlurmScheduler(std::unique_ptr<Commands> commands, SlurmOptions options, Programs programs);

  std::string_view name() const override { return "Slurm"; }
  std::string_view record() const override { return "slurm"; }

  Expected<void> prepare(const AllocationRequest&) override;
  awaitable<SubmitAnswer> submit(AllocationRequest) override;
  awaitable<bool> cancel(JobKey) override;
  awaitable<Expected<QueryAnswer>> query(std::vector<JobKey>, Counted) override;

  std::optional<i64> existing_job() const override;
  Expected<bool> is_over(i64 job) const override { return slurm_job_is_over(job); }
  std::optional<double> longest_wait_s() const override {
    return pending_limit_s(options_.max_pending_minutes);
  }
  std::optional<double> usable_s(const AllocationRequest&, std::optional<double> left) const override;

  awaitable<bool> count_idle(Counted) override;
  i64 idle_nodes(const std::string& hardware) const override;

 private:
  std::vector<std::string> step_words(const AllocationRequest&) const;

  std::unique_ptr<Commands> commands_;
  const SlurmOptions options_;
  const Programs programs_;
  SlurmQueryMemory memory_;
  // Nodes by partition, when they were counted last.
  std::map<std::string, i64> idle_;
  double idle_asked_s_;
};

// The launcher: a batch launcher (batch_launcher.h) over this scheduler.
std::unique_ptr<Launcher> make_slurm(boost::asio::io_context&, SlurmOptions, Programs, Launcher::Sink,
                                     std::unique_ptr<Commands> = nullptr);

}  // namespace sweep::launch
