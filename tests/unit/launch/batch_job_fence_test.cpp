// Who may tell a job to end: the process that runs the sweep, as its database says.
#include "base/files.h"
#include "tests/support/must.h"
#include "tests/unit/launch/batch_job_fixture.h"

namespace sweep::launch {
namespace {

// Another process runs the sweep now: Slurm's word on the job gives no reason to tell its agent anything, nor
// to cancel it.
TEST_F(BatchJobTest, AJobNumberThatWasReusedIsNotCancelled) {
  bool ours = true;
  request_.fence = [&](const std::function<Expected<void>()>& act) {
    return ours ? act() : fail(ErrorKind::kRefused, "", "replaced");
  };
  job_ = std::make_shared<BatchJob>(host_, request_);
  submit(took("17\n"));
  learn(facts("RUNNING"));
  ASSERT_TRUE(job_->post(spool::kFinish, {{"now", false}}));
  ours = false;
  EXPECT_FALSE(job_->post(spool::kFinish, {{"now", false}}));
  EXPECT_FALSE(job_->finish(true));
  job_->kill();
  learn(facts("PENDING"));  // was put back into the queue
  job_->learn({}, true);
  job_->learn({}, true);
  settle();
  EXPECT_EQ(asked("scancel"), 0);
  EXPECT_EQ(dismissals(), 0);
  const auto inbox = must(files::read(spool::inbox(request_.spool)));
  EXPECT_EQ(spool::parse(inbox).lines.size(), 1u);
}

// A database that does not answer says nothing of who runs the sweep.
TEST_F(BatchJobTest, AJobIsCancelledOnceTheDatabaseAnswersAgain) {
  bool answers = true;
  request_.fence = [&](const std::function<Expected<void>()>& act) {
    return answers ? act() : fail(ErrorKind::kBusy, "", "locked");
  };
  job_ = std::make_shared<BatchJob>(host_, request_);
  submit(took("17\n"));
  learn(facts("RUNNING"));
  answers = false;
  job_->kill();
  settle();
  EXPECT_EQ(asked("scancel"), 0);
  answers = true;
  learn(facts("RUNNING"));
  EXPECT_EQ(asked("scancel"), 1);
}

}  // namespace
}  // namespace sweep::launch
