#include "orchestrator/launch/batch/batch_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <nlohmann/json.hpp>

#include "orchestrator/launch/allocation_record.h"
#include "schema/frame.h"

namespace sweep::launch {
namespace {

using State = BatchJobState;
using On = BatchJobEvent;

constexpr int kMostSubmissions = 5;
// Answers in a row that know no such job.
constexpr int kDenials = 2;
// Seconds of a reason that will not pass.
constexpr double kHopelessFor = 20;
// Seconds that a shared file system gets to show the outbox after the scheduler said that the job is over.
constexpr double kLastWords = 5;
// Seconds that a file system may be away.
constexpr double kFolderAwayFor = 3;
constexpr double kLongestRoomPause = 300;
// Seconds after the agent's last message within which the job must be over.
constexpr double kAfterFarewell = 30;

}  // namespace

BatchJob::BatchJob(BatchContext& context, AllocationRequest request)
    : context_(context), request_(std::move(request)), mail_(request_), born_s_(context.now_s()) {}

// Every change of state is made here.
void BatchJob::handle(BatchJobEvent event, BatchOutcome outcome) {
  const auto next = next_state(state_, event);
  assert(next && "illegal event: see batch_state.h");
  if (!next) return;
  if (event == On::kGivenUp) decided_ = outcome;
  if (state_ == State::kCancelling && event != On::kBye) outcome = decided_;
  const bool tells = has_ended(*next) && !ended() && event != On::kAbandoned;
  if (tells) dismiss();
  state_ = *next;
  if (tells) context_.say(Ended{request_.id, std::move(outcome.reason), outcome.lost, outcome.preempted});
}

std::string BatchJob::title() const {
  return fmt::format("{} job {}", context_.scheduler.name(), number_ ? std::to_string(*number_) : key().name);
}

// Written before the submission, so that one cut off by a crash is looked for by its name.
Expected<void> BatchJob::keep_record() const {
  nlohmann::json own = {
      {"name", key().name}, {"job", nullptr}, {"standing", context_.scheduler.existing_job().value_or(0)}};
  if (number_) own["job"] = *number_;
  return launch::keep_record(request_, context_.scheduler.record(), std::move(own));
}

Expected<void> BatchJob::submit() {
  if (auto opened = mail_.open(); !opened) return opened;
  if (auto prepared = context_.scheduler.prepare(request_); !prepared) return prepared;
  number_ = context_.scheduler.existing_job();
  if (auto kept = keep_record(); !kept) return kept;
  send();
  if (number_) handle(On::kAccepted);
  return {};
}

Expected<bool> BatchJob::take_up() {
  const auto& scheduler = context_.scheduler;
  const auto found = read_record(request_.spool, scheduler.record());
  if (!found) return tl::unexpected(found.error());
  if (!*found) return false;
  const nlohmann::json& record = **found;
  restore(request_, record);
  const i64 existing_job = integer_of(record, "standing");
  if (existing_job != scheduler.existing_job().value_or(0))
    return fail(fmt::format("allocation {} of an earlier run {}", request_.id,
                            existing_job == 0 ? fmt::format("is a {} job of its own; go on with --on {}",
                                                            scheduler.name(), scheduler.record())
                                              : fmt::format("is a step of {} job {}; go on with --jobid {}",
                                                            scheduler.name(), existing_job, existing_job)));
  if (auto opened = mail_.open(); !opened) return tl::unexpected(opened.error());
  adopted_ = true;
  if (const i64 job = integer_of(record, "job"); job > 0) number_ = job;
  // What an earlier process submitted is looked for, never submitted again.
  submissions_ = kMostSubmissions;
  handle(number_ ? On::kAccepted : On::kUnanswered);
  context_.poll_soon();
  return true;
}

void BatchJob::send() {
  ++submissions_;
  context_.scheduler.submit(
      request_, [self = shared_from_this()](const SubmitAnswer& answer) { self->answered(answer); });
}

void BatchJob::submit_again() {
  handle(On::kSubmittedAgain);
  send();
}

void BatchJob::answered(const SubmitAnswer& answer) {
  context_.poll_soon();
  switch (answer.kind) {
    case SubmitAnswer::Kind::kAccepted:
      accept(answer.number.value_or(0));
      break;
    case SubmitAnswer::Kind::kUnanswered:
      handle(On::kUnanswered);
      remark(answer.text);
      break;
    case SubmitAnswer::Kind::kNoRoom:
      handle(On::kNoRoom);
      wait_for_room(answer.text);
      break;
    case SubmitAnswer::Kind::kRefused:
      return handle(On::kRefused, {answer.text, true, false});
    case SubmitAnswer::Kind::kStepOver:
      over_since_s_ = context_.now_s();
      look();
      return handle(On::kStepOver, {answer.text, true, false});
  }
  hear_farewell();
}

void BatchJob::accept(i64 number) {
  number_ = number;
  if (auto kept = keep_record(); !kept) remark(kept.error().message);
  handle(On::kAccepted);
}

// The user has as many jobs as allowed: it is submitted again when some may have ended.
void BatchJob::wait_for_room(const std::string& why) {
  submissions_ = 0;
  submit_again_at_s_ = context_.now_s() + room_pause_s_;
  room_pause_s_ = std::min(2 * room_pause_s_, kLongestRoomPause);
  remark(fmt::format("{} takes no further job of yours now ({}); it is asked again, at most every {} min",
                     context_.scheduler.name(), why, kLongestRoomPause / 60));
}

void BatchJob::look_for_room() {
  const auto name = context_.scheduler.name();
  if (cancel_ != Cancel::kNotWanted)
    handle(On::kWithdrawn, {fmt::format("cancelled before {} took it", name), false, false});
  else if (const auto late = waits_too_long())
    handle(On::kWithdrawn, {fmt::format("{}, and {} never took it", *late, name), true, false});
  else if (context_.now_s() >= submit_again_at_s_.value_or(0))
    submit_again();
}

Expected<i64> BatchJob::post(std::string_view kind, const nlohmann::json& body) {
  if (ended()) return fail(fmt::format("allocation {} has ended", request_.id));
  return mail_.post(kind, body);
}

Expected<void> BatchJob::finish(bool now) {
  if (!agent_spoke_) kill();  // no agent reads the inbox yet
  return post(spool::kFinish, {{"now", now}}).map([](i64) {});
}

void BatchJob::kill() {
  if (closed() || !mail_.ours()) return;
  if (cancel_ == Cancel::kNotWanted) cancel_ = Cancel::kWanted;
  dismiss();
  if (state_ == State::kWaitingForRoom) return context_.poll_soon();
  // Without a number it is cancelled as soon as that is known.
  if (!number_ || cancel_ == Cancel::kUnderWay) return;
  cancel_ = Cancel::kUnderWay;
  context_.scheduler.cancel(key(), [self = shared_from_this()](bool worked) {
    self->cancel_ = Cancel::kWanted;
    if (worked) self->context_.poll_soon();  // else: again when the scheduler was asked next
  });
}

// The scheduler may be wrong: after it lost its state it can list a running job as waiting or ended, and an agent that was
// stopped can go on. An agent that still lives, or starts later, finds this in its inbox.
void BatchJob::dismiss() {
  if (dismissed_ || mail_.bye()) return;
  dismissed_ = post(spool::kFinish, {{"now", true}}).has_value();
}

void BatchJob::started() {
  agent_spoke_ = true;
  Started out{request_.id, title(), number_.value_or(0), std::nullopt, 0};
  if (!nodes_.empty()) out.where += " on " + nodes_;
  out.seconds_left = context_.scheduler.usable_s(request_, seconds_left_);
  if (adopted_ && seconds_left_) out.held_s = std::max(0.0, request_.seconds - *seconds_left_);
  context_.say(out);
}

void BatchJob::look() {
  bool any = false;
  while (!ended()) {
    auto news = mail_.news();
    const bool speaks = news.has_value() || mail_.delivered() > 0;
    // How long an adopted one still has, the scheduler must tell first.
    if (!agent_spoke_ && speaks && (!adopted_ || had_nodes_)) started();
    if (!news) break;
    any = true;
    context_.say(*news);
  }
  look_for_folder();
  if (any || over_since_s_) hear_farewell();
}

// While a submission is under way nothing is concluded: its answer comes soon, and this is called again then.
void BatchJob::hear_farewell() {
  if (ended() || state_ == State::kSubmitting) return;
  const auto bye = mail_.bye();
  if (!bye) return;
  farewell_at_s_ = context_.now_s();
  context_.poll_soon();
  handle(On::kBye, {bye->reason, false, bye->cause != spool::ByeCause::kOwn});
}

// Without its folder the agent can report nothing.
void BatchJob::look_for_folder() {
  if (ended() || state_ == State::kSubmitting || state_ == State::kCancelling) return;
  if (!mail_.gone()) return folder_gone_since_s_.reset();
  const double now = context_.now_s();
  if (!folder_gone_since_s_) folder_gone_since_s_ = now;
  if (now - *folder_gone_since_s_ < kFolderAwayFor) return;
  give_up(
      fmt::format("its folder {} was removed or replaced while it ran: what had not been read of it is lost",
                  request_.spool.string()),
      true, false);
  context_.poll_soon();
}

bool BatchJob::is_this(const JobStatus& status) const {
  return status.name == key().name && (!number_ || status.number == *number_);
}

void BatchJob::learn(const std::vector<JobStatus>& of_this_name, bool denied) {
  if (state_ == State::kSubmitting || closed()) return;
  if (state_ == State::kWaitingForRoom) return look_for_room();
  const JobStatus* mine = nullptr;
  for (const JobStatus& status : of_this_name)
    if (is_this(status) && (mine == nullptr || status.number < mine->number)) mine = &status;
  if (mine == nullptr) {
    if (denied && ++denied_ >= kDenials) missing();
    return;
  }
  denied_ = 0;
  if (!number_) accept(mine->number);
  if (cancel_ != Cancel::kNotWanted && mine->phase != Phase::kEnded) kill();
  apply(*mine);
}

// The scheduler has no such job: one in doubt is submitted again, one that was known is over.
void BatchJob::missing() {
  denied_ = 0;
  if (state_ != State::kInDoubt)
    return handle(On::kDenied, {fmt::format("{} no longer knows job {}, and its agent sent no last message",
                                            context_.scheduler.name(), number_.value_or(0)),
                                true, false});
  const bool cancelled = cancel_ != Cancel::kNotWanted;
  if (!cancelled && submissions_ < kMostSubmissions) return submit_again();
  handle(On::kWithdrawn,
         {adopted_ ? std::string("it was never submitted")
                   : fmt::format("{} did not take it in {} submissions; see the notices above",
                                 context_.scheduler.name(), submissions_),
          !cancelled, adopted_});
}

void BatchJob::apply(const JobStatus& status) {
  if (!status.nodes.empty()) nodes_ = status.nodes;
  if (status.phase == Phase::kEnded) return over(status);
  const bool running = status.phase == Phase::kRunning || status.phase == Phase::kSuspended;
  if (running) handle(On::kSeenRunning);
  if (status.phase == Phase::kPending) handle(On::kSeenQueued);
  if (state_ == State::kLeaving) {  // the job must go too, and must not start again
    const bool overdue =
        status.phase == Phase::kRunning && context_.now_s() - farewell_at_s_.value_or(0) > kAfterFarewell;
    if (overdue || status.phase == Phase::kPending) kill();
    return;
  }
  if (status.phase == Phase::kPending) return waits(status);
  had_nodes_ = had_nodes_ || running;
  if (status.phase == Phase::kRunning && status.seconds_left) seconds_left_ = status.seconds_left;
  if (status.phase == Phase::kSuspended) remark(fmt::format("{} is suspended", title()));
  if (status.phase == Phase::kUnknown)
    remark(fmt::format("{} is in a state this version does not know: {}", title(), status.state));
}

void BatchJob::over(const JobStatus& status) {
  if (!over_since_s_) over_since_s_ = context_.now_s();
  look();
  handle(On::kSeenOver);
  if (state_ != State::kLastWords) return;
  context_.poll_soon();
  const bool cancelled = cancel_ != Cancel::kNotWanted && status.blame == Blame::kNobody;
  const bool may_still_speak = agent_spoke_ || adopted_;
  if (!cancelled && may_still_speak && context_.now_s() - *over_since_s_ < kLastWords) return;
  handle(On::kLastWordsOver,
         {fmt::format("{} ended without its agent's last message: {}{}", title(), status.state,
                      status.reason.empty() ? "" : " (" + status.reason + ")"),
          status.blame != Blame::kNobody, status.blame == Blame::kNobody});
}

void BatchJob::waits(const JobStatus& status) {
  if (state_ == State::kCancelling) return;
  if (mail_.delivered() > 0)  // its agent ran before: a second start would find a mailbox in use
    return give_up(fmt::format("{} was put back into the queue ({})", title(), status.state), false, true);
  if (status.wait != JobStatus::Wait::kUsual) remark(fmt::format("{} waits: {}", title(), status.reason));
  const double now = context_.now_s();
  if (status.wait != JobStatus::Wait::kHopeless)
    hopeless_since_s_.reset();
  else if (!hopeless_since_s_)
    hopeless_since_s_ = now;
  if (hopeless_since_s_) context_.poll_soon();
  if (hopeless_since_s_ && now - *hopeless_since_s_ > kHopelessFor)
    give_up(fmt::format("{} cannot start: {}", title(), status.reason), true, false);
  else if (const auto late = waits_too_long())
    give_up(fmt::format("{} {} ({})", title(), *late, status.reason.empty() ? status.state : status.reason),
            true, false);
}

std::optional<std::string> BatchJob::waits_too_long() const {
  const auto limit = context_.scheduler.longest_wait_s();
  if (!limit || context_.now_s() - born_s_ <= *limit) return std::nullopt;
  return fmt::format("waited longer than {} min", *limit / 60);
}

// Its end is told when the scheduler has let go of the job: a run that ends then must leave no job in the queue.
void BatchJob::give_up(std::string reason, bool lost, bool preempted) {
  handle(On::kGivenUp, {std::move(reason), lost, preempted});
  kill();
}

void BatchJob::remark(std::string text) {
  if (text == remarked_) return;
  remarked_ = text;
  context_.say(Notice{request_.id, std::move(text)});
}

void BatchJob::abandon() {
  handle(On::kAbandoned);
}

}  // namespace sweep::launch
