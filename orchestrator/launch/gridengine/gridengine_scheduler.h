// GridEngineScheduler: Grid Engine (SGE, Son of Grid Engine and their heirs) behind the Scheduler interface:
// qsub, qdel, and queries in up to three rounds: qstat about all jobs of the user; of those that it does not
// list, or that it lists as finished, qacct; and `qstat -j` about those that the accounting does not have
// either.
#pragma once
#include <memory>

#include "orchestrator/launch/batch/batch_script.h"
#include "orchestrator/launch/batch/scheduler.h"
#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/programs.h"

namespace sweep::launch {

class GridEngineScheduler final : public Scheduler {
 public:
  GridEngineScheduler(std::unique_ptr<Commands> commands, GridEngineSettings options, Programs programs);

  std::string_view name() const override { return "Grid Engine"; }
  std::string_view record() const override { return "gridengine"; }

  Expected<void> prepare(const AllocationRequest&) override;
  awaitable<SubmitAnswer> submit(AllocationRequest) override;
  awaitable<bool> cancel(JobKey) override;
  awaitable<Expected<QueryAnswer>> query(std::vector<JobKey>, Counted) override;

  std::optional<double> longest_wait_s() const override {
    return pending_limit_s(options_.max_pending_minutes);
  }
  std::optional<double> usable_s(const AllocationRequest&, std::optional<double> left) const override;

  // Idle hosts are not counted.
  awaitable<bool> count_idle(Counted) override { co_return false; }
  i64 idle_nodes(const std::string&) const override { return 0; }

 private:
  std::vector<JobKey> next_to_confirm(std::vector<JobKey> jobs);

  std::unique_ptr<Commands> commands_;
  const GridEngineSettings options_;
  const Programs programs_;
  // The job with which the next query by number begins.
  std::size_t turn_ = 0;
};

// The login name that jobs of this process have.
std::string login_name();
// Reads qsub's answer.
SubmitAnswer read_gridengine_submission(const CommandResult&);

}  // namespace sweep::launch
