// Which Slurm job a process is part of, by its environment.
#include "runtime/own_job.h"

#include <gtest/gtest.h>

#include <map>

namespace sweep {
namespace {

std::map<std::string, std::string> variables;
const char* read(const char* name) {
  const auto found = variables.find(name);
  return found == variables.end() ? nullptr : found->second.c_str();
}

TEST(OwnJob, TheScriptOfAnOrchestratorSaysIt) {
  variables = {{"SWEEP_ORCHESTRATOR_JOB", "12@main"}};
  const auto job = own_job(read);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->id, 12);
  EXPECT_EQ(job->cluster, "main");
  EXPECT_TRUE(job->is_orchestrator);
}

TEST(OwnJob, SlurmSaysItInsideAJobAndNotInAShellOfSalloc) {
  variables = {{"SLURM_JOB_ID", "13"}, {"SLURM_CLUSTER_NAME", "main"}};
  EXPECT_FALSE(own_job(read));
  variables["SLURMD_NODENAME"] = "n1";
  const auto job = own_job(read);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->id, 13);
  EXPECT_FALSE(job->is_orchestrator);
}

TEST(OwnJob, WhatIsNoNumberIsNoJob) {
  for (const char* text : {"", "@main", "x@main", "-3@main", "0", "12x@main"}) {
    variables = {{"SWEEP_ORCHESTRATOR_JOB", text}, {"SLURM_JOB_ID", text}, {"SLURMD_NODENAME", "n1"}};
    EXPECT_FALSE(own_job(read)) << text;
  }
}

}  // namespace
}  // namespace sweep
