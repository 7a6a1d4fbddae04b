// JobStatusReader: what a batch job concludes from the scheduler's answers: it waits, waits in vain, runs, is
// over, or is not known. Two answers in a row must deny the job before it counts as gone.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "orchestrator/launch/batch/job_lifecycle.h"
#include "orchestrator/launch/batch/job_mail.h"
#include "orchestrator/launch/batch/job_submission.h"

namespace sweep::launch {

class JobStatusReader {
 public:
  JobStatusReader(std::shared_ptr<JobLifecycle> job, std::shared_ptr<JobMail> mail,
                  std::shared_ptr<JobSubmission> submission)
      : job_(std::move(job)), mail_(std::move(mail)), submission_(std::move(submission)) {}

  // The same as BatchJob::asked and learn.
  void asked() { spoke_when_asked_ = job_->mail().delivered() > 0; }
  void learn(const std::vector<JobStatus>& of_this_name, bool denied);

 private:
  bool is_this(const JobStatus&) const;
  void apply(const JobStatus&);
  void waits(const JobStatus&);
  void over(const JobStatus&);
  bool hopeless_for_long(const JobStatus&);

  std::shared_ptr<JobLifecycle> job_;
  std::shared_ptr<JobMail> mail_;
  std::shared_ptr<JobSubmission> submission_;
  // True if the agent had sent a message when the query was sent that is answered next.
  bool spoke_when_asked_ = false;
  // Answers in a row that knew no such job.
  int denied_ = 0;
  // It cannot start, for the reason that the scheduler gives.
  std::optional<double> hopeless_since_s_;
};

}  // namespace sweep::launch
