// The adapter over scripted commands, whose answers are those of Grid Engine 8.1.9.
#include "orchestrator/launch/gridengine/gridengine_scheduler.h"

#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <map>

namespace sweep::launch {
namespace {

constexpr const char* kNoJobs = "<job_info><queue_info></queue_info><job_info></job_info></job_info>";

std::string one_job(i64 number, const char* name, const char* state) {
  return "<job_info><queue_info><job_list><JB_job_number>" + std::to_string(number) +
         "</JB_job_number><state>" + state + "</state><full_job_name>" + name +
         "</full_job_name></job_list></queue_info></job_info>";
}

CommandResult answer_of(int code, std::string out, std::string err = "") {
  CommandResult result;
  result.code = code, result.out = std::move(out), result.err = std::move(err);
  return result;
}

// Gives each program its answers; those of qstat -j are apart from the list.
class AnsweredCommands final : public Commands {
 public:
  explicit AnsweredCommands(boost::asio::io_context& io) : Commands(io), loop_(io) {}
  awaitable<CommandResult> run(std::vector<std::string> argv, double) override {
    auto program = argv[0] == "env" ? argv[2] : argv[0];
    if (program == "qstat" && argv[1] == "-j") program = "qstat -j";
    asked.push_back(program);
    const CommandResult said = answers[program];
    co_await boost::asio::post(loop_, boost::asio::use_awaitable);
    co_return said;
  }
  std::map<std::string, CommandResult> answers;
  std::vector<std::string> asked;

 private:
  boost::asio::io_context& loop_;
};

class GridEngineSchedulerTest : public ::testing::Test {
 protected:
  Expected<QueryAnswer> query(std::vector<JobKey> keys) {
    commands_->asked.clear();
    return run_to_end(io_, scheduler_.query(keys, [this] { ++counted_; }));
  }
  bool cancel() { return run_to_end(io_, scheduler_.cancel({"n", 3})); }

  boost::asio::io_context io_;
  AnsweredCommands* commands_ = new AnsweredCommands(io_);
  GridEngineScheduler scheduler_{std::unique_ptr<Commands>(commands_), GridEngineSettings(), Programs()};
  int counted_ = 0;
};

TEST_F(GridEngineSchedulerTest, AListedJobNeedsOneCommand) {
  commands_->answers["qstat"] = answer_of(0, one_job(3, "n", "r"));
  const auto answer = query({{"n", 3}});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->jobs.at("n").at(0).phase, Phase::kRunning);
  EXPECT_EQ(counted_, 1);
}

TEST_F(GridEngineSchedulerTest, AMasterThatIsAwayDeniesNothing) {
  commands_->answers["qstat"] =
      answer_of(1, "", "error: commlib error: got select error (Connection refused)\n");
  EXPECT_FALSE(query({{"n", 3}}));
  commands_->answers["qstat"] = answer_of(0, "<job_info><queue");
  EXPECT_FALSE(query({{"n", 3}}));
}

TEST_F(GridEngineSchedulerTest, AnUnlistedJobIsLookedForInTheAccounting) {
  commands_->answers["qstat"] = answer_of(0, kNoJobs);
  commands_->answers["qacct"] =
      answer_of(0, "=====\njobname n\njobnumber 3\nfailed 37  : enforced h_rt\nexit_status 3\n");
  const auto answer = query({{"n", 3}});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->jobs.at("n").at(0).phase, Phase::kEnded);
  EXPECT_EQ(answer->jobs.at("n").at(0).blame, Blame::kExternal);
  EXPECT_TRUE(answer->denied.empty());
}

TEST_F(GridEngineSchedulerTest, OnlyTheMasterDeniesAJobWithANumber) {
  commands_->answers["qstat"] = answer_of(0, kNoJobs);
  commands_->answers["qacct"] = answer_of(1, "", "error: job id 3 not found\n");
  commands_->answers["qstat -j"] = answer_of(1, "", "Following jobs do not exist: \n3\n");
  EXPECT_EQ(query({{"n", 3}})->denied, std::vector<std::string>{"n"});
  commands_->answers["qstat -j"] = answer_of(1, "", "error: commlib error: got select error\n");
  EXPECT_TRUE(query({{"n", 3}})->denied.empty());
}

TEST_F(GridEngineSchedulerTest, AJobWithoutANumberIsDeniedByItsName) {
  commands_->answers["qstat"] = answer_of(0, one_job(3, "other", "r"));
  EXPECT_EQ(query({{"n", std::nullopt}})->denied, std::vector<std::string>{"n"});
}

TEST_F(GridEngineSchedulerTest, AFinishedJobThatTheAccountingDoesNotHaveYetIsOver) {
  commands_->answers["qstat"] = answer_of(0, one_job(3, "n", "z"));
  commands_->answers["qacct"] = answer_of(1, "", "error: job id 3 not found\n");
  const auto answer = query({{"n", 3}});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->jobs.at("n").at(0).phase, Phase::kEnded);
  EXPECT_EQ(answer->jobs.at("n").at(0).blame, Blame::kExternal);
}

TEST_F(GridEngineSchedulerTest, AJobThatIsGoneAlreadyIsCancelled) {
  commands_->answers["qdel"] = answer_of(1, "", "denied: job \"3\" does not exist\n");
  EXPECT_TRUE(cancel());
  commands_->answers["qdel"] =
      answer_of(1, "", "error: commlib error: got select error (Connection refused)\n");
  EXPECT_FALSE(cancel());
}

TEST(GridEngineSubmission, EachAnswerOfQsub) {
  using Kind = SubmitAnswer::Kind;
  const auto kind = [](int code, const char* out, const char* err) {
    return read_gridengine_submission(answer_of(code, out, err)).kind;
  };
  EXPECT_EQ(kind(0, "17\n", ""), Kind::kAccepted);
  EXPECT_EQ(kind(0, "", ""), Kind::kUnanswered);
  EXPECT_EQ(
      kind(25, "",
           "Unable to run job: job rejected: only 1 jobs are allowed per user (current job count: 1)\n"),
      Kind::kNoRoom);
  EXPECT_EQ(kind(1, "",
                 "Unable to run job: unable to send message to qmaster using port 6444 on host \"m\": got "
                 "send error\n"),
            Kind::kUnanswered);
  EXPECT_EQ(kind(1, "", "Unable to run job: error: no suitable queues\nExiting.\n"), Kind::kRefused);
  EXPECT_EQ(read_gridengine_submission(answer_of(0, "17\n")).number, 17);
}

}  // namespace
}  // namespace sweep::launch
