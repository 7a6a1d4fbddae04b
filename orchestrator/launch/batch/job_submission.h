// JobSubmission: brings one job into the scheduler's queue: submits it, looks for it by name when the answer
// is not clear, waits while the user may have no more jobs, takes over the job of an earlier process. A job
// is never submitted while another of its name may exist.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "orchestrator/launch/batch/job_lifecycle.h"
#include "orchestrator/launch/batch/job_mail.h"

namespace sweep::launch {

class JobSubmission : public std::enable_shared_from_this<JobSubmission> {
 public:
  JobSubmission(std::shared_ptr<JobLifecycle> job, std::shared_ptr<JobMail> mail)
      : job_(std::move(job)), mail_(std::move(mail)) {}

  Expected<void> begin();
  // Takes over a job of an earlier process, as its record says. False: it was never about to be submitted, or was a step
  // of another existing job, which is over.
  Expected<bool> adopt();
  // The scheduler has the job, with this number.
  void accept(i64 number);
  // Asks in kWaitingForRoom, after each query, whether it is time to submit again.
  void look_for_room();
  // The scheduler has no such job: one that may not have been submitted is submitted again, one that was known is over.
  void denied();

 private:
  void send();
  awaitable<void> submit(std::shared_ptr<JobSubmission>);
  void submit_again();
  void answered(const SubmitAnswer&);
  void wait_for_room(const std::string& why);

  std::shared_ptr<JobLifecycle> job_;
  std::shared_ptr<JobMail> mail_;
  int submissions_ = 0;
  std::optional<double> submit_again_at_s_;  // set in kWaitingForRoom
  double room_pause_s_ = 15;                 // before the next submission then; doubles
};

}  // namespace sweep::launch
