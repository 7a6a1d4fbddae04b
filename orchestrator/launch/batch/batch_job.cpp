#include "orchestrator/launch/batch/batch_job.h"

#include "schema/codec.h"
#include "schema/spool.h"

namespace sweep::launch {

BatchJob::BatchJob(BatchHost& host, AllocationRequest request)
    : life_(std::make_shared<JobLifecycle>(host, std::move(request))),
      mail_(std::make_shared<JobMail>(life_)),
      submission_(std::make_shared<JobSubmission>(life_, mail_)),
      status_(life_, mail_, submission_) {}

Expected<void> BatchJob::finish(bool now) {
  if (!mail_->agent_spoke() && !life_->mail().has_outbox()) kill();  // no agent reads the inbox yet
  life_->host().poll_soon();  // an agent that was killed does not answer
  return post(spool::kFinish, to_json(Finish{now})).map([](i64) {});
}

}  // namespace sweep::launch
