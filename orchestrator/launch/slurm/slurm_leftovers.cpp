#include "orchestrator/launch/slurm/slurm_leftovers.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "orchestrator/launch/allocation_record.h"
#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/slurm/slurm_script.h"
#include "orchestrator/launch/slurm/slurm_state.h"
#include "schema/frame.h"

namespace sweep::launch {
namespace {

constexpr double kCleanLimit = 60;  // seconds
constexpr int kLooks = 60;          // at jobs that were cancelled, one a second

// Jobs in the queue or running that have one of these names.
Expected<std::vector<JobFacts>> living_jobs(const std::vector<AllocationPlace>& places) {
  if (places.empty()) return std::vector<JobFacts>();
  std::vector<std::string> names;
  for (const auto& place : places) names.push_back(slurm_job_name(place.id));
  const auto answer = run_alone(squeue_by_name(names), kCleanLimit);
  if (!answer.ok()) return fail("squeue does not answer, so nothing is known of Slurm jobs: " + answer.err);
  auto jobs = read_squeue(answer.out);
  std::erase_if(jobs, [](const JobFacts& job) { return meaning_of(job.state).phase == Phase::kEnded; });
  return jobs;
}

// Steps of an existing job are not jobs: squeue does not list them by our names.
bool is_own_job(const AllocationPlace& place) {
  const auto record = read_record(place.spool, "slurm");
  return record && *record && integer_of(**record, "standing") == 0;
}

class SlurmLeftovers final : public Leftovers {
 public:
  SlurmLeftovers(std::vector<JobFacts> jobs, std::vector<AllocationPlace> recorded)
      : jobs_(std::move(jobs)), recorded_(std::move(recorded)) {}

  std::vector<std::string> lines() const override {
    std::vector<std::string> out;
    for (const auto& job : jobs_)
      out.push_back(fmt::format("Slurm job {}  {}  {}  {}", job.id, job.name, job.state, job.nodes));
    return out;
  }
  std::vector<std::string> end() override {
    std::vector<std::string> failed;
    for (const auto& job : jobs_) {
      const auto answer = run_alone({"scancel", std::to_string(job.id)}, kCleanLimit);
      if (!answer.ok()) failed.push_back(fmt::format("scancel {}: {}", job.id, last_line(answer.err)));
    }
    if (auto dropped = drop_records(); !dropped) failed.push_back(dropped.error().message);
    return failed;
  }

 private:
  // A cancelled job ends within seconds. A run would take it over until its record is gone.
  Expected<void> drop_records() {
    for (int looks = 0; looks < kLooks; ++looks) {
      const auto living = living_jobs(recorded_);
      if (!living) return tl::unexpected(living.error());
      if (living->empty()) {
        for (const auto& place : recorded_) drop_record(place.spool);
        return {};
      }
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    return fail("some of these jobs have not ended yet");
  }

  std::vector<JobFacts> jobs_;
  std::vector<AllocationPlace> recorded_;  // that a run would take over
};

}  // namespace

Expected<std::unique_ptr<Leftovers>> slurm_leftovers(std::span<const AllocationPlace> places) {
  auto jobs = living_jobs({places.begin(), places.end()});
  if (!jobs) return tl::unexpected(jobs.error());
  std::vector<AllocationPlace> recorded;
  for (const auto& place : places)
    if (place.open && is_own_job(place)) recorded.push_back(place);
  return std::make_unique<SlurmLeftovers>(std::move(*jobs), std::move(recorded));
}

}  // namespace sweep::launch
