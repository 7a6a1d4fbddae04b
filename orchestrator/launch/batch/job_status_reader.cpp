#include "orchestrator/launch/batch/job_status_reader.h"

#include <fmt/format.h>

namespace sweep::launch {
namespace {

using State = BatchJobState;
using On = BatchJobEvent;

// Answers in a row that know no such job.
constexpr int kDenials = 2;
// Seconds of a reason that will not pass.
constexpr double kHopelessFor = 20;
// Seconds that a shared file system gets to show the outbox after the scheduler said that the job is over.
constexpr double kLastWords = 5;
// Seconds after the agent's last message within which the job must be over.
constexpr double kAfterLastMessage = 30;

}  // namespace

bool JobStatusReader::is_this(const JobStatus& status) const {
  const JobKey key = job_->key();
  return status.name == key.name && (!key.number || status.number == *key.number);
}

void JobStatusReader::learn(const std::vector<JobStatus>& of_this_name, bool denied) {
  if (job_->state() == State::kSubmitting || job_->closed()) return;
  if (job_->state() == State::kWaitingForRoom) return submission_->look_for_room();
  const JobStatus* mine = nullptr;
  for (const JobStatus& status : of_this_name)
    if (is_this(status) && (mine == nullptr || status.number < mine->number)) mine = &status;
  if (mine == nullptr) {
    if (!denied || ++denied_ < kDenials) return;
    denied_ = 0;
    return submission_->denied();
  }
  denied_ = 0;
  if (!job_->identity().number) submission_->accept(mine->number);
  if (job_->cancel_wanted() && mine->phase != Phase::kEnded) job_->cancel();
  apply(*mine);
}

void JobStatusReader::apply(const JobStatus& status) {
  JobSightings& seen = job_->seen();
  if (!status.nodes.empty()) seen.nodes = status.nodes;
  if (status.phase == Phase::kEnded) return over(status);
  seen.over_since_s.reset();
  const bool running = status.phase == Phase::kRunning || status.phase == Phase::kSuspended;
  if (running) job_->handle(On::kSeenRunning);
  if (status.phase == Phase::kPending) job_->handle(On::kSeenQueued);
  if (job_->state() == State::kLeaving) {  // the job must go too, and must not start again
    const double since_s = job_->host().now_s() - mail_->last_message_at_s().value_or(0);
    const bool overdue = status.phase == Phase::kRunning && since_s > kAfterLastMessage;
    if (overdue || status.phase == Phase::kPending) job_->cancel();
    return;
  }
  if (status.phase == Phase::kPending) return waits(status);
  seen.had_nodes = seen.had_nodes || running;
  if (status.phase == Phase::kRunning && status.seconds_left) seen.seconds_left = status.seconds_left;
  if (status.phase == Phase::kSuspended) job_->remark(fmt::format("{} is suspended", job_->title()));
  if (status.phase == Phase::kUnknown)
    job_->remark(fmt::format("{} is in a state this version does not know: {}", job_->title(), status.state));
}

void JobStatusReader::over(const JobStatus& status) {
  JobSightings& seen = job_->seen();
  if (!seen.over_since_s) seen.over_since_s = job_->host().now_s();
  mail_->look();
  job_->handle(On::kSeenOver);
  if (job_->state() != State::kLastWords) return;
  job_->host().poll_soon();
  const bool cancelled = job_->cancel_wanted() && status.blame == Blame::kExternal;
  const bool may_still_speak = mail_->agent_spoke() || job_->identity().adopted;
  if (!cancelled && may_still_speak && job_->host().now_s() - *seen.over_since_s < kLastWords) return;
  // A job that was cancelled in the queue has no log.
  const auto log = status.blame == Blame::kExternal ? std::string() : mail_->last_of_log();
  job_->handle(On::kLastWordsOver,
               {fmt::format("{} ended without its agent's last message: {}{}{}", job_->title(), status.state,
                            status.reason.empty() ? "" : " (" + status.reason + ")", log),
                status.blame != Blame::kExternal, status.blame == Blame::kExternal});
}

// A reason for which waiting does not help may be given for a moment only, while the scheduler starts.
bool JobStatusReader::hopeless_for_long(const JobStatus& status) {
  if (status.wait != JobStatus::Wait::kHopeless) {
    hopeless_since_s_.reset();
    return false;
  }
  const double now = job_->host().now_s();
  if (!hopeless_since_s_) hopeless_since_s_ = now;
  job_->host().poll_soon();
  return now - *hopeless_since_s_ > kHopelessFor;
}

void JobStatusReader::waits(const JobStatus& status) {
  if (job_->state() == State::kCancelling) return;
  const auto title = job_->title();
  if (spoke_when_asked_)  // its agent ran before: a second start would find a mailbox in use
    return job_->give_up(
        {fmt::format("{} was put back into the queue ({})", title, status.state), false, true});
  if (job_->mail().delivered() > 0)
    return job_->host().poll_soon();  // this answer may be older than the start
  if (status.wait != JobStatus::Wait::kUsual) job_->remark(fmt::format("{} waits: {}", title, status.reason));
  if (hopeless_for_long(status))
    job_->give_up({fmt::format("{} cannot start: {}", title, status.reason), true, false});
  else if (const auto late = job_->waits_too_long())
    job_->give_up(
        {fmt::format("{} {} ({})", title, *late, status.reason.empty() ? status.state : status.reason), true,
         false});
}

}  // namespace sweep::launch
