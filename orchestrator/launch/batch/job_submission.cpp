#include "orchestrator/launch/batch/job_submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "orchestrator/launch/allocation_record.h"
#include "schema/frame.h"

namespace sweep::launch {
namespace {

using State = BatchJobState;
using On = BatchJobEvent;

constexpr int kMostSubmissions = 5;
constexpr double kLongestRoomPause = 300;

}  // namespace

Expected<void> JobSubmission::begin() {
  Scheduler& scheduler = job_->host().scheduler();
  if (auto opened = job_->mail().open(); !opened) return opened;
  if (auto prepared = scheduler.prepare(job_->request()); !prepared) return prepared;
  job_->identity().number = scheduler.existing_job();
  if (auto kept = job_->keep_record(); !kept) return kept;
  send();
  if (job_->identity().number) job_->handle(On::kAccepted);
  return {};
}

Expected<bool> JobSubmission::adopt() {
  const Scheduler& scheduler = job_->host().scheduler();
  AllocationRequest& request = job_->request();
  SWEEP_GET(const auto found, read_record(request.spool, scheduler.record()));
  if (!found) return false;
  const nlohmann::json& record = *found;
  restore(request, record);
  const i64 existing_job = integer_of(record, "standing");
  if (existing_job != scheduler.existing_job().value_or(0)) {
    const auto over = existing_job == 0 ? Expected<bool>(false) : scheduler.is_over(existing_job);
    if (!over) return over;
    if (*over) {
      drop_record(request.spool);
      return false;
    }
    return fail(fmt::format("allocation {} of an earlier run {}", request.id,
                            existing_job == 0 ? fmt::format("is a {} job of its own; go on with --on {}",
                                                            scheduler.name(), scheduler.record())
                                              : fmt::format("is a step of {} job {}; go on with --jobid {}",
                                                            scheduler.name(), existing_job, existing_job)));
  }
  if (auto opened = job_->mail().open(); !opened) return tl::unexpected(opened.error());
  job_->identity().adopted = true;
  if (const i64 job = integer_of(record, "job"); job > 0) job_->identity().number = job;
  // A job that an earlier process submitted is looked for, never submitted again.
  submissions_ = kMostSubmissions;
  job_->handle(job_->identity().number ? On::kAccepted : On::kUnanswered);
  job_->host().poll_soon();
  return true;
}

void JobSubmission::send() {
  ++submissions_;
  job_->host().start(submit(shared_from_this()));
}

awaitable<void> JobSubmission::submit(std::shared_ptr<JobSubmission>) {
  if (job_->closed()) co_return;  // the event loop may come here late: the host may be gone
  const SubmitAnswer answer = co_await job_->host().scheduler().submit(job_->request());
  answered(answer);
}

void JobSubmission::submit_again() {
  job_->handle(On::kSubmittedAgain);
  send();
}

void JobSubmission::answered(const SubmitAnswer& answer) {
  job_->host().poll_soon();
  switch (answer.kind) {
    case SubmitAnswer::Kind::kAccepted:
      accept(answer.number.value_or(0));
      break;
    case SubmitAnswer::Kind::kUnanswered:
      job_->handle(On::kUnanswered);
      job_->remark(answer.text);
      break;
    case SubmitAnswer::Kind::kNoRoom:
      job_->handle(On::kNoRoom);
      wait_for_room(answer.text);
      break;
    case SubmitAnswer::Kind::kRefused:
      return job_->handle(On::kRefused, {answer.text, true, false});
    case SubmitAnswer::Kind::kStepOver:
      job_->seen().over_since_s = job_->host().now_s();
      mail_->look();
      return job_->handle(On::kStepOver, {answer.text, true, false});
  }
  mail_->look_for_last_message();
}

void JobSubmission::accept(i64 number) {
  job_->identity().number = number;
  if (auto kept = job_->keep_record(); !kept) job_->remark(kept.error().message);
  job_->handle(On::kAccepted);
}

// The user has as many jobs as allowed: it is submitted again when some may have ended.
void JobSubmission::wait_for_room(const std::string& why) {
  submissions_ = 0;
  submit_again_at_s_ = job_->host().now_s() + room_pause_s_;
  room_pause_s_ = std::min(2 * room_pause_s_, kLongestRoomPause);
  job_->remark(fmt::format("{} refuses further jobs for now ({}); retrying, at most every {} min",
                           job_->host().scheduler().name(), why, kLongestRoomPause / 60));
}

void JobSubmission::look_for_room() {
  const auto name = job_->host().scheduler().name();
  if (job_->cancel_wanted())
    job_->handle(On::kWithdrawn, {fmt::format("cancelled before {} took it", name), false, false});
  else if (const auto late = job_->waits_too_long())
    job_->handle(On::kWithdrawn, {fmt::format("{}, and {} never took it", *late, name), true, false});
  else if (job_->host().now_s() >= submit_again_at_s_.value_or(0))
    submit_again();
}

void JobSubmission::denied() {
  const auto name = job_->host().scheduler().name();
  const JobIdentity& identity = job_->identity();
  if (job_->state() != State::kInDoubt)
    return job_->handle(On::kDenied,
                        {fmt::format("{} no longer knows job {}, and its agent sent no last message{}", name,
                                     identity.number.value_or(0), mail_->last_of_log()),
                         true, false});
  const bool cancelled = job_->cancel_wanted();
  if (!cancelled && submissions_ < kMostSubmissions) return submit_again();
  job_->handle(On::kWithdrawn,
               {identity.adopted ? std::string("it was never submitted")
                                 : fmt::format("{} did not take it in {} submissions; see the notices above",
                                               name, submissions_),
                !cancelled, identity.adopted});
}

}  // namespace sweep::launch
