#include "orchestrator/launch/batch/job_mail.h"

#include <fmt/format.h>

#include <algorithm>

namespace sweep::launch {
namespace {

// Seconds that a file system may be away.
constexpr double kFolderAwayFor = 3;

}  // namespace

void JobMail::look() {
  bool any = false;
  while (!job_->ended()) {
    auto news = job_->mail().news();
    const bool speaks = news.has_value() || job_->mail().delivered() > 0;
    // How long an adopted one still has, the scheduler must say first.
    if (!agent_spoke_ && speaks && (!job_->identity().adopted || job_->seen().had_nodes)) report_start();
    if (!news) break;
    any = true;
    job_->host().report(*news);
  }
  look_for_folder();
  if (any || job_->seen().over_since_s) look_for_last_message();
}

void JobMail::report_start() {
  agent_spoke_ = true;
  const JobSightings& seen = job_->seen();
  Started out{job_->request().id, job_->title(), job_->identity().number.value_or(0), std::nullopt, 0};
  if (!seen.nodes.empty()) out.where += " on " + seen.nodes;
  out.seconds_left = job_->host().scheduler().usable_s(job_->request(), seen.seconds_left);
  if (job_->identity().adopted && seen.seconds_left)
    out.held_s = std::max(0.0, job_->request().seconds - *seen.seconds_left);
  job_->host().report(out);
}

void JobMail::look_for_last_message() {
  if (job_->ended() || job_->state() == BatchJobState::kSubmitting) return;
  const auto bye = job_->mail().bye();
  if (!bye) return;
  last_message_at_s_ = job_->host().now_s();
  job_->host().poll_soon();
  job_->handle(BatchJobEvent::kBye, {bye->reason, false, bye->cause != spool::ByeCause::kOwn});
}

// Without its folder the agent can report nothing.
void JobMail::look_for_folder() {
  const auto state = job_->state();
  if (job_->ended() || state == BatchJobState::kSubmitting || state == BatchJobState::kCancelling) return;
  if (!job_->mail().gone()) return folder_gone_since_s_.reset();
  const double now = job_->host().now_s();
  if (!folder_gone_since_s_) folder_gone_since_s_ = now;
  if (now - *folder_gone_since_s_ < kFolderAwayFor) return;
  job_->give_up(
      {fmt::format("its folder {} was removed or replaced while it ran: what had not been read of it is lost",
                   job_->request().spool.string()),
       true, false});
  job_->host().poll_soon();
}

}  // namespace sweep::launch
