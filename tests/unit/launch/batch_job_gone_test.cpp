// Batch jobs that are gone: before their agent spoke, for a while, or with the existing job whose step they were.
#include <cstdlib>
#include <fstream>
#include <functional>

#include "base/files.h"
#include "orchestrator/launch/allocation_record.h"
#include "tests/support/must.h"
#include "tests/unit/launch/batch_job_fixture.h"

namespace sweep::launch {
namespace {

class FirstInPath {
 public:
  explicit FirstInPath(const std::filesystem::path& folder) {
    ::setenv("PATH", (folder.string() + ":" + before_).c_str(), 1);
  }
  ~FirstInPath() { ::setenv("PATH", before_.c_str(), 1); }

 private:
  const std::string before_ = std::getenv("PATH");
};

TEST_F(BatchJobTest, AJobThatFailsBeforeItsAgentSpeaksShowsItsLog) {
  const auto end = [&](const std::function<void()>& before) {
    events_.clear();
    job_ = std::make_shared<BatchJob>(host_, request_);
    submit(took("17\n"));
    learn(facts("RUNNING"));
    before();
    learn(facts("FAILED", "NonZeroExitCode"));
    return ended() == nullptr ? "" : ended()->reason;
  };
  const auto log = request_.spool / "slurm.log";
  EXPECT_NE(end([] {}).find("share"), std::string::npos) << "the nodes may not see the folder";
  const auto of_module =
      end([&] { std::ofstream(log) << std::string(5000, 'x') << "\nno\x1b[1mmodule cuda\n\n"; });
  EXPECT_TRUE(of_module.ends_with(log.string() + " ends with: no?[1mmodule cuda")) << of_module;
  EXPECT_LT(end([&] { std::ofstream(log) << std::string(5000, 'x'); }).size(), 1000u);
}

TEST_F(BatchJobTest, AJobThatIsSeenRunningAgainGetsTheTimeForItsLastWordsAnew) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  learn(facts("NODE_FAIL"));
  learn(facts("RUNNING"));
  now_ += 60;
  learn(facts("COMPLETED"));
  EXPECT_EQ(ended(), nullptr);
}

// While nothing changes Slurm is asked every 30 s: found as a run that idled so long after its last trial.
TEST_F(BatchJobTest, SlurmIsAskedAtOnceOfAnAgentThatIsToldToEndOrFallsSilent) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  now_ += 8;
  agent_says(spool::kHello, {{"pid", 1}});
  const auto polls_after = [&](double seconds) {
    const int before = polls_;
    now_ += seconds;
    job_->look();
    return polls_ - before;
  };
  EXPECT_EQ(polls_after(15), 0) << "it was silent for 8 s before";
  EXPECT_EQ(polls_after(2), 1);
  EXPECT_EQ(polls_after(100), 0) << "once";
  const int before = polls_;
  ASSERT_TRUE(job_->finish(false));
  EXPECT_EQ(polls_, before + 1);
}

// squeue of another place says what a run is told of the existing job of an earlier one.
TEST_F(BatchJobTest, AStepOfAnotherJobIsGivenUpOnceThatJobIsOver) {
  SlurmOptions inside = options();
  inside.existing_job = 99;
  SlurmScheduler other(std::make_unique<ScriptedCommands>(io_), inside, {"/bin/true", "/bin/true", true});
  Host host(*this, other);
  const TemporaryFolder programs;
  const FirstInPath path(programs);
  const auto squeue_says = [&](const std::string& script) {
    std::ofstream(programs / "squeue") << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(programs / "squeue", std::filesystem::perms::owner_all);
  };
  ASSERT_TRUE(BatchJob(host, request_).submit());
  settle();
  const auto adopt = [&] { return BatchJob(host_, request_).adopt(); };  // jobs of our own
  squeue_says("echo '99|RUNNING|1:00|n1|x|1|None'");
  EXPECT_FALSE(adopt());
  squeue_says("echo 'Unable to contact slurm controller' >&2; exit 1");
  EXPECT_FALSE(adopt());
  EXPECT_TRUE(has_record(request_.spool));
  for (const char* gone : {"echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1",
                           "echo '99|CANCELLED|1:00|n1|x|1|None'", "true"}) {
    ASSERT_TRUE(BatchJob(host, request_).submit());
    settle();
    squeue_says(gone);
    const auto taken = must(adopt());
    EXPECT_FALSE(taken);
    EXPECT_FALSE(has_record(request_.spool)) << gone;
  }
}

}  // namespace
}  // namespace sweep::launch
