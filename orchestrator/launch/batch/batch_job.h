// BatchJob: one allocation that is a job of a batch system. States and transitions are in batch_state.h. It
// is told facts, and asks its Scheduler only to submit and to cancel. Its parts: the state and its
// consequences (JobLifecycle), the way into the queue (JobSubmission), its mailbox (JobMail), and what the
// scheduler says of it (JobStatusReader).
#pragma once
#include <memory>
#include <vector>

#include "orchestrator/launch/batch/job_lifecycle.h"
#include "orchestrator/launch/batch/job_mail.h"
#include "orchestrator/launch/batch/job_status_reader.h"
#include "orchestrator/launch/batch/job_submission.h"

namespace sweep::launch {

class BatchJob {
 public:
  BatchJob(BatchHost& host, AllocationRequest request);

  Expected<void> submit() { return submission_->begin(); }
  // Takes over a job of an earlier process, as its record says. False: it was never about to be submitted.
  Expected<bool> adopt() { return submission_->adopt(); }

  Expected<i64> post(std::string_view kind, const nlohmann::json& body) { return life_->post(kind, body); }
  Expected<void> finish(bool now);
  void acknowledge(std::uint64_t offset) { life_->mail().acknowledge(offset); }
  void kill() { life_->cancel(); }
  // Reads the outbox and reports what is new.
  void look() { mail_->look(); }
  // A query begins, which learn() answers.
  void asked() { status_.asked(); }
  // One query was answered: every job of this name; `denied`: the scheduler was asked for its number and
  // knows none such (or, without a number, was asked everywhere by name).
  void learn(const std::vector<JobStatus>& of_this_name, bool denied) { status_.learn(of_this_name, denied); }
  // No further event; the job lives on.
  void abandon() { life_->handle(BatchJobEvent::kAbandoned); }

  const AllocationRequest& request() const { return life_->request(); }
  JobKey key() const { return life_->key(); }
  BatchJobState state() const { return life_->state(); }
  bool closed() const { return life_->closed(); }
  // Whether the scheduler said once that it has its nodes.
  bool had_nodes() const { return life_->seen().had_nodes; }

 private:
  std::shared_ptr<JobLifecycle> life_;
  std::shared_ptr<JobMail> mail_;
  std::shared_ptr<JobSubmission> submission_;
  JobStatusReader status_;
};

}  // namespace sweep::launch
