#include "orchestrator/launch/batch/batch_leftovers.h"

#include <gtest/gtest.h>

#include <algorithm>

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
            [](const AllocationId& id) { return "sweep-" + id; }};
  }

  bool answers_ = true;
  std::vector<JobStatus> jobs_;
  std::vector<i64> cancelled_;
};

TEST_F(BatchLeftoversTest, JobsOfTheseAllocationsAreListedAndCancelledAndNoOthers) {
  jobs_ = {living_job(3, "sweep-a1"), living_job(4, "sweep-other")};
  const AllocationPlace place{"a1", "/nowhere", true};
  const auto left = batch_leftovers(questions(), {&place, 1});
  ASSERT_TRUE(left);
  EXPECT_EQ((*left)->lines().size(), 1u);
  EXPECT_TRUE((*left)->end().empty());
  EXPECT_EQ(cancelled_, std::vector<i64>{3});
}

TEST_F(BatchLeftoversTest, ASchedulerThatDoesNotAnswerIsAnError) {
  answers_ = false;
  const AllocationPlace place{"a1", "/nowhere", true};
  EXPECT_FALSE(batch_leftovers(questions(), {&place, 1}));
  EXPECT_TRUE(batch_leftovers(questions(), {}));
}

}  // namespace
}  // namespace sweep::launch
