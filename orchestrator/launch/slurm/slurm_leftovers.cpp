#include <fmt/format.h>

#include "orchestrator/launch/batch/batch_launcher.h"
#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/slurm/slurm_config.h"
#include "orchestrator/launch/slurm/slurm_scheduler.h"
#include "orchestrator/launch/slurm/slurm_script.h"
#include "orchestrator/launch/slurm/slurm_state.h"

namespace sweep::launch {
namespace {

constexpr double kCleanLimit = 60;  // seconds

Expected<std::vector<JobStatus>> living_slurm_jobs(const std::vector<std::string>& names) {
  const auto answer = run_alone(squeue_by_name(names), kCleanLimit);
  if (!answer.ok()) return fail("squeue does not answer, so nothing is known of Slurm jobs: " + answer.err);
  std::vector<JobStatus> out;
  for (const auto& facts : read_squeue(answer.out))
    if (const auto status = status_of(facts); status.phase != Phase::kEnded) out.push_back(status);
  return out;
}

Expected<void> cancel_slurm_job(i64 number) {
  const auto answer = run_alone({"scancel", std::to_string(number)}, kCleanLimit);
  if (!answer.ok()) return fail(fmt::format("scancel {}: {}", number, last_line(answer.err)));
  return {};
}

}  // namespace

Expected<std::unique_ptr<Leftovers>> slurm_leftovers(std::span<const AllocationPlace> places) {
  return batch_leftovers({"Slurm", "slurm", living_slurm_jobs, cancel_slurm_job, slurm_job_is_over}, places);
}

}  // namespace sweep::launch
