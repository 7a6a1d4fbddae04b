#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "orchestrator/launch/allocation_record.h"
#include "orchestrator/launch/batch/batch_launcher.h"
#include "orchestrator/launch/batch/batch_script.h"
#include "schema/frame.h"

namespace sweep::launch {
namespace {

constexpr int kLooks = 60;  // looks at jobs that were cancelled, one a second

Expected<std::vector<JobStatus>> living_of(const BatchQuestions& ask,
                                           const std::vector<AllocationPlace>& places) {
  if (places.empty()) return std::vector<JobStatus>();
  std::vector<std::string> names;
  for (const auto& place : places) names.push_back(batch_job_name(place.id));
  return ask.living(names);
}

// Whether its record keeps a run from going on, and can be dropped: it is a job of its own, or a step of an existing
// job that is over. The scheduler does not list steps by our names.
Expected<bool> has_record_to_drop(const BatchQuestions& ask, const AllocationPlace& place) {
  if (!place.open) return false;
  const auto record = read_record(place.spool, ask.record);
  if (!record || !*record) return false;
  const i64 existing_job = integer_of(**record, "standing");
  return existing_job == 0 ? Expected<bool>(true) : ask.is_over(existing_job);
}

class BatchLeftovers final : public Leftovers {
 public:
  BatchLeftovers(BatchQuestions ask, std::vector<JobStatus> jobs, std::vector<AllocationPlace> recorded)
      : ask_(std::move(ask)), jobs_(std::move(jobs)), recorded_(std::move(recorded)) {}

  std::vector<std::string> lines() const override {
    std::vector<std::string> out;
    for (const auto& job : jobs_)
      out.push_back(
          fmt::format("{} job {}  {}  {}  {}", ask_.scheduler, job.number, job.name, job.state, job.nodes));
    for (const auto& place : recorded_)
      if (std::ranges::find(jobs_, batch_job_name(place.id), &JobStatus::name) == jobs_.end())
        out.push_back(fmt::format("record of allocation {}, whose job is over", place.id));
    return out;
  }
  std::vector<std::string> end() override {
    std::vector<std::string> failed;
    for (const auto& job : jobs_)
      if (const auto cancelled = ask_.cancel(job.number); !cancelled)
        failed.push_back(cancelled.error().message);
    if (auto dropped = drop_records(); !dropped) failed.push_back(dropped.error().message);
    return failed;
  }

 private:
  // A cancelled job ends within seconds. A run would take it over until its record is gone.
  Expected<void> drop_records() {
    for (int looks = 0; looks < kLooks; ++looks) {
      SWEEP_GET(const auto living, living_of(ask_, recorded_));
      if (living.empty()) {
        for (const auto& place : recorded_) drop_record(place.spool);
        return {};
      }
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    return fail("some of these jobs have not ended yet");
  }

  BatchQuestions ask_;
  std::vector<JobStatus> jobs_;
  std::vector<AllocationPlace> recorded_;  // allocations that a run would take over
};

}  // namespace

Expected<std::unique_ptr<Leftovers>> batch_leftovers(BatchQuestions ask,
                                                     std::span<const AllocationPlace> places) {
  SWEEP_GET(auto jobs, living_of(ask, {places.begin(), places.end()}));
  std::vector<AllocationPlace> recorded;
  for (const auto& place : places) {
    SWEEP_GET(const auto record, has_record_to_drop(ask, place));
    if (record) recorded.push_back(place);
  }
  return std::make_unique<BatchLeftovers>(std::move(ask), std::move(jobs), std::move(recorded));
}

}  // namespace sweep::launch
