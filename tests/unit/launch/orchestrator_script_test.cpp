// The script of an orchestrator that is a job: its directives, what reaches its shell, and that a shell
// understands it.
#include "orchestrator/launch/slurm/orchestrator_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace sweep::launch {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

OrchestratorJob job() {
  return {"sweep-run-x-1",
          "cpu",
          {{"account", "my project"}},
          "/data/50% mine/r.db.log",
          {"/opt/sweep", "resume", "it's $(mine)", "--db", "/data/50% mine/r.db"}};
}

TEST(OrchestratorScript, AsksForLittleAndComesAgain) {
  const auto script = orchestrator_script(job()).value();
  for (const char* line :
       {"#SBATCH --job-name=sweep-run-x-1\n", "#SBATCH --partition=cpu\n",
        "#SBATCH --account=\"my project\"\n", "#SBATCH --requeue\n", "#SBATCH --open-mode=append\n",
        "#SBATCH --output=\"/data/50%% mine/r.db.log\"\n", "#SBATCH --cpus-per-task=1\n"})
    EXPECT_THAT(script, HasSubstr(line));
  EXPECT_THAT(script,
              HasSubstr("/opt/sweep resume 'it'\\''s $(mine)' --db '/data/50% mine/r.db' $again &\n"));
  EXPECT_THAT(script, Not(HasSubstr("--exclusive")));
}

TEST(OrchestratorScript, OneNameForEachSweepOfEachDatabase) {
  const auto name = orchestrator_job_name("/data/r.db", "mine");
  EXPECT_EQ(name, orchestrator_job_name("/data/./r.db", "mine"));
  EXPECT_NE(name, orchestrator_job_name("/data/other.db", "mine"));
  EXPECT_NE(name, orchestrator_job_name("/data/r.db", "yours"));
}

// Started, started again, and told to go: as Slurm does it, without Slurm.
TEST(OrchestratorScript, DoesNotExportItsEnvironmentAndTakesOverWhenRequeued) {
  const TemporaryFolder here;
  auto told = job();
  told.words = {"/bin/sh", "-c",
                "printf '%s,' \"$SLURM_CONF\" \"$SLURM_JOB_ID\" \"$SLURM_RESTART_COUNT\" \"$@\" >" +
                    (here / "said").string(),
                "sh"};
  std::ofstream(here / "script") << orchestrator_script(told).value();
  const auto said = [&](const std::string& restarts) {
    const auto line =
        "SLURM_CONF=c SLURM_JOB_ID=7 SLURM_RESTART_COUNT=" + restarts + " bash " + (here / "script").string();
    EXPECT_EQ(std::system(line.c_str()), 0);
    std::ifstream in(here / "said");
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(said("0"), "c,,,");
  EXPECT_EQ(said("2"), "c,,,--take-over,");
}

// scontrol of another place takes the job back, or not.
TEST(OrchestratorScript, NearItsTimeLimitItSaysWhetherSlurmTookItBack) {
  const TemporaryFolder here;
  auto told = job();
  told.words = {"/bin/sh", "-c", "kill -USR1 $PPID; exec sleep 600", "sh"};
  std::ofstream(here / "script") << orchestrator_script(told).value();
  const auto exit_code = [&](int of_scontrol) {
    std::ofstream(here / "scontrol") << "#!/bin/sh\nexit " << of_scontrol << "\n";
    std::filesystem::permissions(here / "scontrol", std::filesystem::perms::owner_all);
    const auto line = "PATH=" + here.string() + ":$PATH SLURM_JOB_ID=7 bash " + (here / "script").string();
    return WEXITSTATUS(std::system(line.c_str()));
  };
  EXPECT_EQ(exit_code(0), 0);
  EXPECT_EQ(exit_code(1), 1);
}

}  // namespace
}  // namespace sweep::launch
