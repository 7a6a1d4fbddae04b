#include "orchestrator/launch/slurm/slurm_environment.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <set>

namespace sweep::launch {
namespace {

std::set<std::string> left(const std::vector<std::string>& argv, std::vector<std::string> around) {
  std::vector<char*> entries;
  for (auto& each : around) entries.push_back(each.data());
  entries.push_back(nullptr);
  const auto out = slurm_environment(argv, entries.data());
  return {out.begin(), out.end()};
}

using Set = std::set<std::string>;

TEST(SlurmEnvironment, QuestionsAreAskedWithoutFiltersAndAnsweredInUtc) {
  const Set around =
      left({"squeue", "--noheader"}, {"HOME=/h", "SQUEUE_USERS=boss", "SLURM_TIME_FORMAT=relative",
                                      "TZ=Asia/Tokyo", "SLURM_CONF=/c", "SLURM_CLUSTERS=big"});
  EXPECT_EQ(around, (Set{"HOME=/h", "TZ=UTC", "SLURM_CONF=/c", "SLURM_CLUSTERS=big"}));
}

TEST(SlurmEnvironment, SettingsOfTheScriptWinOverTheEnvironment) {
  const std::string script = ::testing::TempDir() + "slurm_environment_" + std::to_string(::getpid()) + ".sh";
  std::ofstream(script) << "#!/bin/bash\n#SBATCH --partition=gpu\n#SBATCH --time=00:10:00\nexec true\n";
  const Set around =
      left({"sbatch", "--parsable", script},
           {"SBATCH_PARTITION=cpu", "SBATCH_TIMELIMIT=1", "SBATCH_ACCOUNT=me", "SBATCH_JOB_NAME=x",
            "SBATCH_ARRAY_INX=0-9", "SLURM_JOB_ID=1", "SLURM_MEM_PER_CPU=1", "TZ=Asia/Tokyo"});
  std::remove(script.c_str());
  EXPECT_EQ(around, (Set{"SBATCH_ACCOUNT=me", "TZ=Asia/Tokyo"}));
}

TEST(SlurmEnvironment, NothingOfThisJobReachesAnotherOrAStep) {
  EXPECT_EQ(left({"srun", "--jobid=1"}, {"SLURM_JOB_ID=2", "SBATCH_ACCOUNT=me", "SRUN_DEBUG=3", "A=", "odd"}),
            (Set{"A=", "odd"}));
}

}  // namespace
}  // namespace sweep::launch
