#include "orchestrator/launch/batch/job_mail.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "orchestrator/launch/commands.h"

namespace sweep::launch {
namespace {

// Seconds that a file system may be away.
constexpr double kFolderAwayFor = 3;
// Seconds of silence before the scheduler is asked out of turn, unless the agent was silent so long before.
constexpr double kSilence = 5;
constexpr std::uint64_t kLogTail = 400;  // bytes of a log that people are shown

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
  look_for_silence(any);
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
  const std::string reason = bye->cause == spool::ByeCause::kSignal
                                 ? fmt::format(
                                       "{} was told to end (scancel, preempted, requeued, its node set down, "
                                       "or near its time limit)",
                                       job_->title())
                                 : bye->reason;
  job_->handle(BatchJobEvent::kBye, {reason, false, bye->cause != spool::ByeCause::kOwn});
}

std::string JobMail::last_of_log() const {
  if (agent_spoke_ || job_->mail().has_outbox()) return {};
  const auto& spool = job_->request().spool;
  const auto log = spool / fmt::format("{}.log", job_->host().scheduler().record());
  std::error_code ec;
  if (!std::filesystem::exists(log, ec))
    return fmt::format(
        "; it wrote nothing into {}: if its nodes do not see that folder, put the database onto a disk "
        "that they share (`sweep doctor --on {}`)",
        spool.string(), job_->host().scheduler().record());
  const std::uint64_t size = files::size_of(log);
  std::string line = last_line(files::read_from(log, size - std::min(size, kLogTail), kLogTail).value_or(""));
  if (line.empty()) return fmt::format("; its log {} is empty", log.string());
  std::ranges::replace_if(
      line, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return fmt::format("; {} ends with: {}", log.string(), line);
}

// An agent that was killed says no last word: its job is over, and the scheduler is asked seldom while nothing changes.
// Silence that is longer than twice the longest one so far is a change. Long trials are silent each time.
void JobMail::look_for_silence(bool any) {
  if (!agent_spoke_ || job_->ended()) return;
  const double now = job_->host().now_s();
  const double silent_s = spoke_at_s_ > 0 ? now - spoke_at_s_ : 0;
  if (any || spoke_at_s_ <= 0) {
    longest_silence_s_ = std::max(longest_silence_s_, silent_s);
    spoke_at_s_ = now, asked_of_silence_ = false;
  } else if (!asked_of_silence_ && silent_s > std::max(kSilence, 2 * longest_silence_s_)) {
    asked_of_silence_ = true;
    job_->host().poll_soon();
  }
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
