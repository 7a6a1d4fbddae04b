// The Slurm launcher's questions: one about all jobs, then about those that squeue no longer lists.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>

#include "orchestrator/launch/slurm/slurm_scheduler.h"
#include "tests/support/temporary_folder.h"

namespace sweep::launch {
namespace {

using Script = std::function<CommandResult(const std::vector<std::string>&)>;

class AnsweringCommands final : public Commands {
 public:
  AnsweringCommands(boost::asio::io_context& io, Script script, std::map<std::string, int>& asked)
      : Commands(io), loop_(io), script_(std::move(script)), asked_(asked) {}
  awaitable<CommandResult> run(std::vector<std::string> argv, double) override {
    ++asked_[argv[0]];
    const CommandResult said = script_(argv);
    co_await boost::asio::post(loop_, boost::asio::use_awaitable);
    co_return said;
  }

 private:
  boost::asio::io_context& loop_;
  Script script_;
  std::map<std::string, int>& asked_;
};

CommandResult fine(std::string out) {
  CommandResult said;
  said.code = 0, said.out = std::move(out);
  return said;
}
CommandResult failing(std::string err) {
  CommandResult said;
  said.code = 1, said.err = std::move(err);
  return said;
}

class SlurmTest : public ::testing::Test {
 protected:
  // Runs until `enough` or, when something is amiss, five minutes.
  void play(Script script, int allocations, const std::function<bool()>& enough) {
    boost::asio::io_context io;
    SlurmOptions options;
    options.poll_seconds = 0.5;
    auto launcher = make_slurm(
        io, options, {"/bin/true", "/bin/true", true}, [&](const Event& event) { events_.push_back(event); },
        std::make_unique<AnsweringCommands>(io, std::move(script), asked_));
    for (int i = 1; i <= allocations; ++i) {
      AllocationRequest request;
      request.id = "a" + std::to_string(i);
      request.spool = folder_ / request.id;
      std::filesystem::create_directories(request.spool);
      ASSERT_TRUE(launcher->request(request));
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    while (!enough() && std::chrono::steady_clock::now() < until)
      io.run_one_for(std::chrono::milliseconds(200));
  }
  int ended() const {
    return static_cast<int>(std::count_if(events_.begin(), events_.end(), [](const Event& event) {
      return std::holds_alternative<Ended>(event);
    }));
  }

  const TemporaryFolder folder_;
  std::map<std::string, int> asked_;
  std::vector<Event> events_;
};

TEST_F(SlurmTest, ALauncherThatGoesBeforeTheLoopRunsSubmitsNothing) {
  boost::asio::io_context io;
  const Script script = [](const std::vector<std::string>&) { return fine("1\n"); };
  auto launcher = make_slurm(
      io, SlurmOptions(), {"/bin/true", "/bin/true", true}, [](const Event&) {},
      std::make_unique<AnsweringCommands>(io, script, asked_));
  AllocationRequest request;
  request.id = "a1", request.spool = folder_;
  ASSERT_TRUE(launcher->request(request));
  launcher.reset();
  io.run();
  EXPECT_EQ(asked_["sbatch"], 0);
}

TEST_F(SlurmTest, OneQuestionIsAboutAllJobs) {
  std::size_t most_names = 0;
  int number = 0;
  play(
      [&](const std::vector<std::string>& argv) {
        if (argv[0] == "sbatch") return fine(std::to_string(++number) + "\n");
        const auto names =
            std::find_if(argv.begin(), argv.end(), [](const auto& w) { return w.rfind("--name=", 0) == 0; });
        if (names != argv.end())
          most_names = std::max<std::size_t>(most_names, 1 + std::count(names->begin(), names->end(), ','));
        std::string out;
        for (int i = 1; i <= 3; ++i)
          out += std::to_string(i) + "|PENDING|10:00||sweep-a" + std::to_string(i) + "|1|Resources\n";
        return fine(out);
      },
      3, [&] { return asked_["squeue"] >= 3; });
  EXPECT_EQ(most_names, 3u);
  EXPECT_EQ(asked_["sbatch"], 3);
  EXPECT_EQ(asked_["sacct"] + asked_["scontrol"], 0);
  EXPECT_EQ(ended(), 0);
}

TEST_F(SlurmTest, FailedQueriesChangeNothingAndAreReportedOnce) {
  play(
      [](const std::vector<std::string>& argv) {
        return argv[0] == "sbatch" ? fine("1\n")
                                   : failing("slurm_load_jobs error: Unable to contact slurm controller\n");
      },
      1, [&] { return asked_["squeue"] >= 5; });
  EXPECT_EQ(ended(), 0);
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_NE(std::get<Notice>(events_[0]).text.find("nothing is concluded"), std::string::npos);
}

TEST_F(SlurmTest, AJobThatSqueueNoLongerListsIsLookedUpInTheAccounting) {
  play(
      [](const std::vector<std::string>& argv) {
        if (argv[0] == "sbatch") return fine("1\n");
        return fine(argv[0] == "sacct" ? "1|NODE_FAIL|n1|sweep-a1|None\n" : "");
      },
      1, [&] { return ended() == 1; });
  ASSERT_EQ(ended(), 1);
  EXPECT_NE(std::get<Ended>(events_.back()).reason.find("NODE_FAIL"), std::string::npos);
  EXPECT_EQ(asked_["scontrol"], 0);
}

TEST_F(SlurmTest, WithoutAccountingAJobIsOverOnceTheControllerDoesNotKnowItTwice) {
  play(
      [](const std::vector<std::string>& argv) {
        if (argv[0] == "sbatch") return fine("1\n");
        if (argv[0] == "sacct") return failing("Slurm accounting storage is disabled\n");
        return argv[0] == "scontrol" ? failing("slurm_load_jobs error: Invalid job id specified\n")
                                     : fine("");
      },
      1, [&] { return ended() == 1; });
  EXPECT_EQ(ended(), 1);
  EXPECT_EQ(asked_["sacct"], 1) << "it is not asked again where there is none";
  EXPECT_EQ(asked_["scontrol"], 2);
}

TEST_F(SlurmTest, ANumberThatNowBelongsToAnotherJobMeansOursIsGone) {
  play(
      [](const std::vector<std::string>& argv) {
        if (argv[0] == "sbatch") return fine("1\n");
        if (argv[0] == "sacct") return failing("Slurm accounting storage is disabled\n");
        return fine(argv[0] == "scontrol"
                        ? "JobId=1 JobName=somebodys JobState=RUNNING SubmitTime=u NodeList=n1\n"
                        : "");
      },
      1, [&] { return ended() == 1; });
  ASSERT_EQ(ended(), 1);
  EXPECT_TRUE(std::get<Ended>(events_.back()).lost);
}

// Slurm gives a job that it starts again a later time of submission. `sweep-a1` of number 1 is ours all the
// same.
TEST_F(SlurmTest, AJobThatSlurmStartedAgainIsTheSameOne) {
  int shown = 0;
  play(
      [&](const std::vector<std::string>& argv) {
        if (argv[0] == "sbatch") return fine("1\n");
        if (argv[0] == "sacct") return failing("Slurm accounting storage is disabled\n");
        if (argv[0] != "scontrol") return fine("");
        const bool again = ++shown > 1;
        return fine(std::string("JobId=1 JobName=sweep-a1 JobState=") + (again ? "NODE_FAIL" : "RUNNING") +
                    " SubmitTime=2026-11-21T10:0" + (again ? "5" : "0") + ":00 NodeList=n1\n");
      },
      1, [&] { return ended() == 1 || shown > 8; });
  ASSERT_EQ(ended(), 1);
  EXPECT_NE(std::get<Ended>(events_.back()).reason.find("NODE_FAIL"), std::string::npos);
}

TEST_F(SlurmTest, AnInterruptedSubmissionIsLookedUpByItsName) {
  play(
      [](const std::vector<std::string>& argv) {
        CommandResult killed;
        killed.signal = 9;
        return argv[0] == "sbatch" ? killed : fine("17|PENDING|10:00||sweep-a1|1|Resources\n");
      },
      1, [&] { return asked_["squeue"] >= 3; });
  EXPECT_EQ(ended(), 0) << "slurmctld may have taken the job";
  EXPECT_EQ(asked_["sbatch"], 1);
}

TEST_F(SlurmTest, AJobOfAnotherUserWithOurNameDoesNotHideThatOursIsGone) {
  play(
      [](const std::vector<std::string>& argv) {
        if (argv[0] == "sbatch") return fine("1\n");
        if (argv[0] == "squeue") return fine("99|PENDING|10:00||sweep-a1|1|Resources\n");
        if (argv[0] == "sacct") return failing("Slurm accounting storage is disabled\n");
        return failing("slurm_load_jobs error: Invalid job id specified\n");
      },
      1, [&] { return ended() == 1; });
  ASSERT_EQ(ended(), 1);
  EXPECT_TRUE(std::get<Ended>(events_.back()).lost);
}

}  // namespace
}  // namespace sweep::launch
