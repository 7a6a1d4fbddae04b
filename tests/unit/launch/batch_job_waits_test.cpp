// A Slurm job waits before it runs: for room for one more of this user's, for its turn in the queue.
#include "tests/unit/launch/batch_job_fixture.h"

namespace sweep::launch {
namespace {

const char* const kNoMore =
    "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job violates "
    "accounting/QOS policy (job submit limit, user's size and/or time limits)\n";

TEST_F(BatchJobTest, WhereTheUserMayHaveNoMoreJobsItIsSubmittedLater) {
  SlurmOptions patient = options();
  patient.max_pending_minutes = 0;
  commands_ = new ScriptedCommands(io_);
  SlurmScheduler slurm(std::unique_ptr<Commands>(commands_), patient, {"/bin/true", "/bin/true", true});
  Host host(*this, slurm);
  job_ = std::make_shared<BatchJob>(host, request_);
  submit(refused(kNoMore));
  for (int i = 0; i < 20; ++i) job_->learn({}, true);  // unknown to the scheduler, as it was never submitted
  settle();
  EXPECT_EQ(ended(), nullptr);
  EXPECT_EQ(asked("sbatch"), 1);
  ASSERT_EQ(count<Notice>(), 1);
  EXPECT_NE(std::get<Notice>(events_[0]).text.find("(QOSMaxSubmitJobPerUserLimit; Batch job submission"),
            std::string::npos)
      << std::get<Notice>(events_[0]).text;
  for (int again = 0; again < 9; ++again) {
    commands_->sbatch.push_back(refused(kNoMore));
    now_ += 300, job_->learn({}, true);
    settle();
  }
  EXPECT_EQ(asked("sbatch"), 10);
  EXPECT_EQ(count<Notice>(), 1) << "once";
  commands_->sbatch.push_back(took("17\n"));
  now_ += 300, job_->learn({}, true);
  settle();
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  EXPECT_EQ(count<Started>(), 1);
}

TEST_F(BatchJobTest, WaitingToBeSubmittedHasTheSameLimitAndIsCancelledAtOnce) {
  submit(refused(kNoMore));
  now_ += 601;
  job_->learn({}, true);
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(ended()->reason, "waited longer than 10 min, and Slurm never took it");
  EXPECT_TRUE(ended()->lost && job_->closed());

  events_.clear(), request_.id = "a0002-0badcafe";
  job_ = std::make_shared<BatchJob>(host_, request_);
  submit(refused(kNoMore));
  ASSERT_TRUE(job_->finish(true));
  job_->learn({}, true);
  ASSERT_NE(ended(), nullptr);
  EXPECT_FALSE(ended()->lost);
  EXPECT_EQ(asked("scancel"), 0);
}

TEST_F(BatchJobTest, WaitingHasALimitWhichIsShorterForHopelessReasons) {
  submit(took("17\n"));
  learn(facts("PENDING", "Resources"));
  now_ += 599;
  learn(facts("PENDING", "Resources"));
  EXPECT_EQ(ended(), nullptr);
  now_ += 2;
  learn(facts("PENDING", "Resources"));
  EXPECT_EQ(asked("scancel"), 1);
  EXPECT_EQ(ended(), nullptr) << "a run that ends now would leave it in the queue";
  learn(facts("PENDING", "Resources"));
  EXPECT_EQ(asked("scancel"), 2) << "the first one did not reach it";
  learn(facts("CANCELLED"));
  ASSERT_NE(ended(), nullptr);
  EXPECT_NE(ended()->reason.find("10 min"), std::string::npos) << ended()->reason;
  EXPECT_TRUE(ended()->lost);

  events_.clear();
  job_ = std::make_shared<BatchJob>(host_, request_);
  submit(took("17\n"));
  learn(facts("PENDING", "PartitionConfig"));
  EXPECT_EQ(ended(), nullptr) << "it may be a moment's reason";
  EXPECT_EQ(count<Notice>(), 1) << "and it is said";
  now_ += 30;
  learn(facts("PENDING", "PartitionConfig"));
  job_->learn({}, true), job_->learn({}, true);  // cancelled, and forgotten at once
  ASSERT_NE(ended(), nullptr);
  EXPECT_NE(ended()->reason.find("PartitionConfig"), std::string::npos);
}

TEST_F(BatchJobTest, AFolderRemovedBeforeTheSubmissionEndsTheJob) {
  submit(refused(kNoMore));
  EXPECT_EQ(job_->state(), BatchJobState::kWaitingForRoom);
  std::filesystem::remove_all(request_.spool);
  job_->look();
  now_ += 5;
  job_->look();
  ASSERT_NE(ended(), nullptr);
  EXPECT_TRUE(ended()->lost && job_->closed());
  EXPECT_EQ(asked("sbatch"), 1);
  EXPECT_EQ(asked("scancel"), 0);
}

}  // namespace
}  // namespace sweep::launch
