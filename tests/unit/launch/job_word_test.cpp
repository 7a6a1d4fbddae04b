// Whether the job of a silent orchestrator is over, from what Slurm answers.
#include "orchestrator/launch/slurm/job_word.h"

#include <gtest/gtest.h>

namespace sweep::launch {
namespace {

CommandResult answer(int code, std::string out, std::string err = "") {
  CommandResult said;
  said.code = code, said.out = std::move(out), said.err = std::move(err);
  return said;
}

const char* const kConfig =
    "Configuration data as of 2026-11-22T16:00:00\nClusterName             = main\nX = y\n";

JobEnd asked(const CommandResult& about_job, const CommandResult& config = answer(0, kConfig), i64 job = 12,
             const std::string& cluster = "main") {
  return end_of_job(job, cluster, [&](const std::vector<std::string>& words) {
    return words[2] == "config" ? config : about_job;
  });
}
JobEnd in_state(const std::string& state, i64 job = 12) {
  return asked(
      answer(0, "JobId=" + std::to_string(job) + " JobName=sweep-run JobState=" + state + " Reason=None\n"));
}

TEST(JobWord, AFinalStateIsTheEndOfItsProcesses) {
  for (const char* state : {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "PREEMPTED", "OUT_OF_MEMORY"})
    EXPECT_EQ(in_state(state), JobEnd::kOver) << state;
}

TEST(JobWord, ItLivesUntilSlurmHasCleanedUp) {
  for (const char* state : {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED"})
    EXPECT_EQ(in_state(state), JobEnd::kAlive) << state;
}

TEST(JobWord, OnAFailedNodeOrInTheQueueTheEndOfProcessesIsUnknown) {
  for (const char* state : {"NODE_FAIL", "BOOT_FAIL", "PENDING", "REQUEUED"})
    EXPECT_EQ(in_state(state), JobEnd::kLost) << state;
  EXPECT_EQ(asked(answer(1, "", "slurm_load_jobs error: Invalid job id specified")), JobEnd::kLost);
}

TEST(JobWord, SilenceAnotherClusterAndUnknownStatesChangeNothing) {
  EXPECT_EQ(in_state("NEVER_HEARD_OF"), JobEnd::kUnknown);
  EXPECT_EQ(in_state("COMPLETED", 13), JobEnd::kUnknown);
  EXPECT_EQ(asked(answer(1, "", "Unable to contact slurm controller")), JobEnd::kUnknown);
  EXPECT_EQ(asked(answer(0, "JobId=12 JobState=CANCELLED"), answer(-1, "")), JobEnd::kUnknown);
  EXPECT_EQ(asked(answer(0, "JobId=12 JobState=CANCELLED"), answer(0, "ClusterName = other\n")),
            JobEnd::kUnknown);
  EXPECT_EQ(asked(answer(0, "JobId=12 JobState=CANCELLED"), answer(0, kConfig), 12, ""), JobEnd::kUnknown);
  EXPECT_EQ(asked(answer(0, "JobId=12 JobState=CANCELLED"), answer(0, kConfig), 0), JobEnd::kUnknown);
}

}  // namespace
}  // namespace sweep::launch
