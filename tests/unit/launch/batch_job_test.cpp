// A Slurm job's life, told by scripted commands: no Slurm is asked.
#include "base/files.h"
#include "tests/support/must.h"
#include "tests/unit/launch/batch_job_fixture.h"

namespace sweep::launch {
namespace {

TEST_F(BatchJobTest, ARemovedFolderIsNamedAsTheCause) {
  submit(took("17\n"));
  agent_says(spool::kHello, {{"pid", 1}});
  learn(facts("RUNNING"));
  std::filesystem::remove_all(request_.spool);
  job_->look();
  now_ += 1;
  job_->look();
  EXPECT_EQ(ended(), nullptr) << "a file system may be away for a moment";
  now_ += 5;
  job_->look();
  settle();
  learn(facts("COMPLETED"));
  ASSERT_NE(ended(), nullptr);
  EXPECT_TRUE(ended()->lost);
  EXPECT_NE(ended()->reason.find("removed or replaced"), std::string::npos) << ended()->reason;
}

TEST_F(BatchJobTest, StartsWhenItsAgentSpeaksAndEndsWithItsLastMessage) {
  submit(took("17\n"));
  learn(facts("PENDING", "Resources"));
  EXPECT_EQ(count<Started>(), 0);
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  ASSERT_EQ(count<Started>(), 1);
  const auto& started = std::get<Started>(events_.front());
  EXPECT_EQ(started.pid, 17);
  EXPECT_EQ(started.seconds_left, 500 - 60);
  agent_says(spool::kBye, {{"reason", "finished"}});
  ASSERT_NE(ended(), nullptr);
  EXPECT_FALSE(ended()->lost || ended()->preempted);
  EXPECT_FALSE(job_->closed()) << "Slurm's own end is waited for";
  learn(facts("COMPLETED"));
  EXPECT_TRUE(job_->closed());
  EXPECT_EQ(count<Ended>(), 1);
}

TEST_F(BatchJobTest, AnEmptyAnswerIsIgnoredUntilSlurmReportsTheJobGoneTwice) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  for (int i = 0; i < 50; ++i) job_->learn({}, false);
  EXPECT_EQ(ended(), nullptr);
  job_->learn({}, true);
  EXPECT_EQ(ended(), nullptr);
  learn(facts("RUNNING"));  // it is there again: the count starts anew
  job_->learn({}, true);
  EXPECT_EQ(ended(), nullptr);
  job_->learn({}, true);
  ASSERT_NE(ended(), nullptr);
  EXPECT_TRUE(ended()->lost);
}

TEST_F(BatchJobTest, AReusedNumberIsNotOurs) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  auto other = facts("FAILED");
  other.name = "sweep-a0001-0ddba11";
  learn(other);
  EXPECT_EQ(ended(), nullptr);
}

TEST_F(BatchJobTest, AnAdoptedJobThatIsRequeuedAfterItsAgentStartedIsCancelled) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  auto known = request_;
  known.outbox_offset = std::filesystem::file_size(spool::outbox(request_.spool));
  job_ = std::make_shared<BatchJob>(host_, known);
  ASSERT_TRUE(job_->adopt());
  auto again = facts("PENDING", "BeginTime");
  learn(again);
  EXPECT_EQ(asked("scancel"), 1);
  again.state = "CANCELLED";
  learn(again);
  ASSERT_NE(ended(), nullptr);
  EXPECT_TRUE(ended()->preempted);
}

TEST_F(BatchJobTest, AJobRequeuedAfterItsAgentsLastMessageIsCancelled) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  agent_says(spool::kBye, {{"reason", "signal"}});
  ASSERT_NE(ended(), nullptr);
  auto again = facts("PENDING", "BeginTime");
  learn(again);
  EXPECT_EQ(asked("scancel"), 1);
  again.state = "CANCELLED";
  learn(again);
  EXPECT_TRUE(job_->closed());
}

TEST_F(BatchJobTest, AnUnconfirmedSubmissionIsLookedUpBeforeItIsRepeated) {
  CommandResult late;
  late.timed_out = true;
  submit(late);
  EXPECT_EQ(asked("sbatch"), 1);
  learn(facts("PENDING", "Priority"));
  EXPECT_EQ(job_->key().number, 17);
  EXPECT_EQ(asked("sbatch"), 1) << "it was found: nothing is repeated";
}

TEST_F(BatchJobTest, ASubmissionIsRepeatedAfterSlurmDoesNotKnowTheJobTwice) {
  submit(refused(
      "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)"));
  commands_->sbatch.push_back(took("18\n"));
  job_->learn({}, true);
  settle();
  EXPECT_EQ(asked("sbatch"), 1);
  job_->learn({}, true);
  settle();
  EXPECT_EQ(asked("sbatch"), 2);
  EXPECT_EQ(job_->key().number, 18);
  EXPECT_EQ(ended(), nullptr);
}

TEST_F(BatchJobTest, ARefusalIsSaidAndNotRepeated) {
  submit(refused(
      "sbatch: error: invalid partition specified: gpuu\nsbatch: error: Batch job submission failed\n"));
  ASSERT_NE(ended(), nullptr);
  EXPECT_TRUE(ended()->lost);
  EXPECT_EQ(ended()->reason,
            "refused by sbatch: invalid partition specified: gpuu; Batch job submission failed");
  EXPECT_TRUE(job_->closed());
  EXPECT_EQ(asked("sbatch"), 1);
}

TEST_F(BatchJobTest, PreemptionsUseNoRetryAndFailuresDo) {
  for (const auto& [state, preempted] : {std::pair{"PREEMPTED", true},
                                         {"TIMEOUT", true},
                                         {"NODE_FAIL", false},
                                         {"OUT_OF_MEMORY", false},
                                         {"BOOT_FAIL", false},
                                         {"COMPLETED", false}}) {
    events_.clear();
    job_ = std::make_shared<BatchJob>(host_, request_);
    submit(took("17\n"));
    learn(facts(state));
    ASSERT_NE(ended(), nullptr) << state;
    EXPECT_EQ(ended()->preempted, preempted) << state;
    EXPECT_EQ(ended()->lost, !preempted) << state;
    EXPECT_NE(ended()->reason.find(state), std::string::npos);
  }
}

TEST_F(BatchJobTest, ASlowSharedFileSystemGetsTimeToShowTheLastMessage) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  learn(facts("COMPLETED"));
  EXPECT_EQ(ended(), nullptr);
  agent_says(spool::kBye, {{"reason", "finished"}});
  ASSERT_NE(ended(), nullptr);
  EXPECT_FALSE(ended()->lost);
}

// On a shared file system one look may see what an earlier one did not.
TEST_F(BatchJobTest, ALastMessageCountsWhenAllBeforeItWasDelivered) {
  SpoolMailbox mail(request_);
  auto outbox = must(spool::Writer::open(spool::outbox(request_.spool), request_.id, 1));
  ASSERT_TRUE(outbox.append(spool::kHello, {{"pid", 1}}));
  ASSERT_TRUE(outbox.append(spool::kBye, {{"reason", "finished"}}));
  EXPECT_FALSE(mail.bye());
  EXPECT_TRUE(mail.news());
  EXPECT_TRUE(mail.bye());
  ASSERT_TRUE(outbox.append(spool::kBye, {{"reason", 5}}));
  EXPECT_TRUE(mail.news());
  EXPECT_TRUE(mail.bye()) << "a reason that cannot be read";
}

TEST_F(BatchJobTest, ARequeuedJobIsCancelledAndUsesNoRetry) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  learn(facts("PENDING", "BeginTime"));
  EXPECT_EQ(asked("scancel"), 1);
  EXPECT_EQ(ended(), nullptr) << "Slurm still has it";
  learn(facts("CANCELLED"));
  ASSERT_NE(ended(), nullptr);
  EXPECT_TRUE(ended()->preempted);
  EXPECT_NE(ended()->reason.find("put back into the queue"), std::string::npos) << ended()->reason;
}

// A slow answer says that the job waits although its agent was heard meanwhile.
TEST_F(BatchJobTest, AnAnswerThatIsOlderThanTheStartEndsNoJob) {
  submit(took("17\n"));
  job_->asked();
  agent_says(spool::kHello, {{"pid", 1}});
  job_->learn({status_of(facts("PENDING", "Priority"))}, false);
  settle();
  EXPECT_EQ(asked("scancel"), 0);
  EXPECT_EQ(dismissals(), 0);
  learn(facts("RUNNING"));
  EXPECT_EQ(job_->state(), BatchJobState::kRunning);
}

TEST_F(BatchJobTest, AnAgentThatMayOutliveItsJobIsTold) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  EXPECT_EQ(dismissals(), 0);
  learn(facts("PENDING", "None"));  // slurmctld came back with an older memory: the processes are there
  EXPECT_EQ(dismissals(), 1) << "at once";
  EXPECT_EQ(ended(), nullptr);
  learn(facts("CANCELLED"));
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(dismissals(), 1);
}

TEST_F(BatchJobTest, AnAgentOnANodeThatSlurmGaveUpIsTold) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  learn(facts("NODE_FAIL"));
  now_ += 30;
  learn(facts("NODE_FAIL"));
  ASSERT_NE(ended(), nullptr);
  EXPECT_TRUE(ended()->lost);
  EXPECT_EQ(dismissals(), 1);
}

TEST_F(BatchJobTest, AnAgentThatSentItsLastMessageIsNotTold) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  agent_says(spool::kBye, {{"reason", "finished"}});
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(dismissals(), 0);
}

TEST_F(BatchJobTest, SuspendedAndUnknownStatesChangeNothing) {
  submit(took("17\n"));
  for (const char* state : {"SUSPENDED", "QUANTUM_FLUX", "COMPLETING", "CONFIGURING"}) learn(facts(state));
  EXPECT_EQ(ended(), nullptr);
  EXPECT_EQ(count<Notice>(), 2);
}

TEST_F(BatchJobTest, CancelledWhileItsSubmissionIsUnderWay) {
  commands_->sbatch.push_back(took("17\n"));
  ASSERT_TRUE(job_->submit());
  ASSERT_TRUE(job_->finish(true));
  settle();
  EXPECT_EQ(asked("scancel"), 0);
  learn(facts("PENDING", "Resources"));
  EXPECT_EQ(asked("scancel"), 1);
  learn(facts("CANCELLED"));
  ASSERT_NE(ended(), nullptr);
  EXPECT_TRUE(ended()->preempted);
}

TEST_F(BatchJobTest, TheNextProcessAdoptsTheJobByItsNumber) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  agent_says(spool::kHello, {{"pid", 1}});
  events_.clear();
  auto known = request_;
  known.outbox_offset = std::filesystem::file_size(spool::outbox(request_.spool));
  known.seconds = 0;
  job_ = std::make_shared<BatchJob>(host_, known);
  const auto taken = job_->adopt();
  ASSERT_TRUE(taken && *taken);
  EXPECT_EQ(job_->key().number, 17);
  EXPECT_EQ(job_->request().seconds, 600);
  job_->look();
  EXPECT_EQ(count<Started>(), 0) << "Slurm tells first how long it still has";
  learn(facts("RUNNING"));
  job_->look();
  ASSERT_EQ(count<Started>(), 1);
  EXPECT_EQ(std::get<Started>(events_.front()).held_s, 100);
  EXPECT_EQ(asked("sbatch"), 1);
}

// The limit of GPU-hours is looked at before the outboxes of adopted jobs.
TEST_F(BatchJobTest, AnAdoptedJobWhoseAgentSpokeIsAskedToFinish) {
  submit(took("17\n"));
  auto known = request_;
  job_ = std::make_shared<BatchJob>(host_, known);
  ASSERT_TRUE(job_->adopt());
  EXPECT_TRUE(job_->finish(false));
  settle();
  EXPECT_EQ(asked("scancel"), 1) << "it waits in the queue, and no agent reads its inbox";
  agent_says(spool::kHello, {{"pid", 1}});
  job_ = std::make_shared<BatchJob>(host_, known);
  ASSERT_TRUE(job_->adopt());
  const i64 told_before = dismissals();
  EXPECT_TRUE(job_->finish(false));
  settle();
  EXPECT_EQ(asked("scancel"), 1);
  EXPECT_EQ(dismissals(), told_before);
}

TEST_F(BatchJobTest, AJobThatWasNeverSubmittedDoesNotCountAsRunning) {
  ASSERT_TRUE(job_->submit());
  io_.poll_one();  // the process dies before sbatch answers
  auto again = std::make_shared<BatchJob>(host_, request_);
  const auto taken = again->adopt();
  ASSERT_TRUE(taken && *taken);
  again->learn({}, true);
  again->learn({}, true);
  ASSERT_NE(ended(), nullptr);
  EXPECT_TRUE(ended()->preempted);
  EXPECT_EQ(asked("sbatch"), 1) << "a later process submits nothing in its place";
}

TEST_F(BatchJobTest, TheCauseInALastMessageSaysWhetherItWasPreempted) {
  for (const auto& [reason, preempted] :
       {std::pair{"signal", true}, {"time limit", true}, {"finished", false}, {"a signal of hope", false}}) {
    std::filesystem::remove_all(request_.spool);
    std::filesystem::create_directories(request_.spool);
    events_.clear(), outbox_.reset();
    job_ = std::make_shared<BatchJob>(host_, request_);
    submit(took("17\n"));
    agent_says(spool::kHello, {{"pid", 1}});
    agent_says(spool::kBye, {{"reason", reason}});
    ASSERT_NE(ended(), nullptr) << reason;
    EXPECT_EQ(ended()->preempted, preempted) << reason;
    EXPECT_FALSE(ended()->lost) << reason;
    const bool signal = std::string_view(reason) == "signal";  // of scancel, most often: the job is named
    EXPECT_EQ(ended()->reason.starts_with(signal ? "Slurm job 17" : reason), true) << ended()->reason;
  }
}

TEST_F(BatchJobTest, ALastMessageBeforeTheAnswerOfSbatchIsReadAfterIt) {
  commands_->sbatch.push_back(took("17\n"));
  ASSERT_TRUE(job_->submit());
  agent_says(spool::kHello, {{"pid", 1}});
  agent_says(spool::kBye, {{"reason", "finished"}});
  EXPECT_EQ(job_->state(), BatchJobState::kSubmitting);
  EXPECT_EQ(ended(), nullptr);
  settle();
  EXPECT_EQ(job_->state(), BatchJobState::kLeaving);
  ASSERT_NE(ended(), nullptr);
  learn(facts("COMPLETED"));
  EXPECT_TRUE(job_->closed());
  EXPECT_EQ(count<Ended>(), 1);
}

TEST_F(BatchJobTest, AnAbandonedJobTellsNothing) {
  submit(took("17\n"));
  learn(facts("RUNNING"));
  job_->abandon();
  learn(facts("NODE_FAIL"));
  job_->look();
  job_->kill();
  settle();
  EXPECT_TRUE(job_->closed());
  EXPECT_EQ(ended(), nullptr);
  EXPECT_EQ(asked("scancel"), 0) << "it lives on";
}

TEST_F(BatchJobTest, AStepOfAnExistingJobEndsWithItsProgram) {
  SlurmOptions inside = options();
  inside.existing_job = 99;
  commands_ = new ScriptedCommands(io_);
  SlurmScheduler slurm(std::unique_ptr<Commands>(commands_), inside, {"/bin/true", "/bin/true", true});
  Host host(*this, slurm);
  job_ = std::make_shared<BatchJob>(host, request_);
  ASSERT_TRUE(job_->submit());
  EXPECT_EQ(job_->state(), BatchJobState::kQueued);
  EXPECT_EQ(job_->key().number, 99);
  agent_says(spool::kHello, {{"pid", 1}});
  EXPECT_EQ(count<Started>(), 1);
  settle();  // srun returns
  EXPECT_TRUE(job_->closed());
  ASSERT_NE(ended(), nullptr);
  EXPECT_TRUE(ended()->lost);
  EXPECT_EQ(asked("sbatch") + asked("scancel"), 0);
}

}  // namespace
}  // namespace sweep::launch
