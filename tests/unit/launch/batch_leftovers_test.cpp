#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "orchestrator/launch/allocation_record.h"
#include "orchestrator/launch/batch/batch_launcher.h"
#include "tests/support/must.h"
#include "tests/support/temporary_folder.h"

namespace sweep::launch {
namespace {

JobStatus living_job(i64 number, const std::string& name) {
  JobStatus out;
  out.number = number, out.name = name, out.phase = Phase::kRunning;
  return out;
}

class BatchLeftoversTest : public ::testing::Test {
 protected:
  BatchQuestions questions() {
    return {"Batch", "batch",
            [this](const std::vector<std::string>& names) -> Expected<std::vector<JobStatus>> {
              if (!answers_) return fail("no answer");
              std::vector<JobStatus> out;
              for (const auto& job : jobs_)
                if (std::ranges::find(names, job.name) != names.end()) out.push_back(job);
              return out;
            },
            [this](i64 number) -> Expected<void> {
              cancelled_.push_back(number);
              std::erase_if(jobs_, [number](const JobStatus& job) { return job.number == number; });
              return {};
            },
            [this](i64 number) -> Expected<bool> { return number != running_; }};
  }
  // An allocation that the database does not know to have ended; existing_job: its job's number, 0 for its own.
  AllocationPlace recorded(const AllocationId& id, i64 existing_job) {
    AllocationRequest request;
    request.id = id, request.spool = folder_ / id;
    std::filesystem::create_directories(request.spool);
    EXPECT_TRUE(keep_record(request, "batch", {{"standing", existing_job}}));
    return {id, request.spool, true};
  }

  bool answers_ = true;
  std::vector<JobStatus> jobs_;
  std::vector<i64> cancelled_;
  i64 running_ = 0;  // the existing job that is not over
  const TemporaryFolder folder_;
};

TEST_F(BatchLeftoversTest, JobsOfTheseAllocationsAreListedAndCancelledAndNoOthers) {
  jobs_ = {living_job(3, "sweep-a1"), living_job(4, "sweep-other")};
  const AllocationPlace place{"a1", "/nowhere", true};
  const auto left = must(batch_leftovers(questions(), {&place, 1}));
  EXPECT_EQ(left->lines().size(), 1u);
  EXPECT_TRUE(left->end().empty());
  EXPECT_EQ(cancelled_, std::vector<i64>{3});
}

TEST_F(BatchLeftoversTest, RecordsOfJobsThatAreOverAreShownAndDropped) {
  running_ = 9;
  jobs_ = {living_job(3, "sweep-living")};
  const std::vector<AllocationPlace> places{recorded("living", 0), recorded("own", 0), recorded("step", 8),
                                            recorded("step-of-running", 9)};
  const auto left = must(batch_leftovers(questions(), places));
  EXPECT_EQ(left->lines().size(), 3u) << "one job, and the records of two that are over";
  EXPECT_TRUE(left->end().empty());
  for (const auto& place : places)
    EXPECT_EQ(has_record(place.spool), place.id == "step-of-running") << place.id;
}

TEST_F(BatchLeftoversTest, ASchedulerThatDoesNotAnswerIsAnError) {
  answers_ = false;
  const AllocationPlace place{"a1", "/nowhere", true};
  EXPECT_FALSE(batch_leftovers(questions(), {&place, 1}));
  EXPECT_TRUE(batch_leftovers(questions(), {}));
}

}  // namespace
}  // namespace sweep::launch
