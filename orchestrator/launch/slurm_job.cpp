#include "orchestrator/launch/slurm_job.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "orchestrator/launch/allocation_record.h"
#include "schema/frame.h"

namespace sweep::launch {
namespace {

constexpr double kSbatchLimit = 90, kScancelLimit = 60;
constexpr int kMostSubmissions = 5;
constexpr int kDenials = 2;          // answers in a row that know no such job
constexpr double kHopelessFor = 20;  // seconds of a reason that will not pass
constexpr double kLastWords =
    5;  // after Slurm's word of the end, for a shared file system to show the outbox
constexpr double kLongestRoomPause = 300;
constexpr double kAfterBye = 30;  // then the job itself must be over

}  // namespace

SlurmJob::SlurmJob(SlurmSurroundings& around, AllocationRequest request)
    : around_(around), request_(std::move(request)), mail_(request_), born_s_(around.now_s()) {}

Expected<void> SlurmJob::write_files() const {
  const auto script = slurm_script(request_, around_.options, around_.programs);
  if (!script) return tl::unexpected(script.error());
  if (auto written = files::write_atomically(request_.spool / "job.sh", *script); !written) return written;
  const auto& container = around_.options.container;
  if (container.runtime.empty()) return {};
  const auto wrapper = container_wrapper_path(request_.spool);
  const auto text = container_wrapper(container, around_.programs.rank, request_.spool);
  if (auto written = files::write_atomically(wrapper, text); !written) return written;
  ::chmod(wrapper.c_str(), 0755);
  return {};
}

// Written before the submission, so that one cut off by a crash is looked for by its name.
Expected<void> SlurmJob::keep_record() const {
  nlohmann::json own = {{"name", name()}, {"job", nullptr}, {"standing", around_.options.existing_job}};
  if (job_) own["job"] = *job_;
  return launch::keep_record(request_, "slurm", std::move(own));
}

Expected<void> SlurmJob::submit() {
  if (auto opened = mail_.open(); !opened) return opened;
  if (auto written = write_files(); !written) return written;
  if (around_.options.existing_job > 0) job_ = around_.options.existing_job;
  if (auto kept = keep_record(); !kept) return kept;
  around_.options.existing_job > 0 ? send_step() : send();
  return {};
}

// The head agent as a step of the allocation that is there already; it ends when srun does.
void SlurmJob::send_step() {
  constexpr double kWithoutLimit = 1e8;
  std::vector<std::string> words{"srun",
                                 fmt::format("--jobid={}", *job_),
                                 "--overlap",
                                 "--nodes=1",
                                 "--ntasks=1",
                                 "--job-name=" + name(),
                                 "--output=" + slurm_file_name((request_.spool / "slurm.log").string())};
  for (auto& word : head_agent_words(request_, around_.options, around_.programs))
    words.push_back(std::move(word));
  around_.commands.run(
      std::move(words), kWithoutLimit, [self = shared_from_this()](const CommandResult& said) {
        self->over_since_s_ = self->around_.now_s();
        self->look();
        self->end(fmt::format("the agent's step of Slurm job {} ended: {}", *self->job_, last_line(said.err)),
                  true, false);
        self->closed_ = true;
      });
}

Expected<bool> SlurmJob::take_up() {
  const auto found = read_record(request_.spool, "slurm");
  if (!found) return tl::unexpected(found.error());
  if (!*found) return false;
  const nlohmann::json& record = **found;
  restore(request_, record);
  if (const i64 existing_job = integer_of(record, "standing"); existing_job != around_.options.existing_job)
    return fail(fmt::format(
        "allocation {} of an earlier run {}", request_.id,
        existing_job == 0 ? "is a Slurm job of its own; go on with --on slurm"
                          : fmt::format("is a step of Slurm job {0}; go on with --jobid {0}", existing_job)));
  if (const i64 job = integer_of(record, "job"); job > 0) job_ = job;
  if (auto opened = mail_.open(); !opened) return tl::unexpected(opened.error());
  adopted_ = true;
  in_doubt_ = !job_;
  submissions_ = kMostSubmissions;  // what an earlier process asked for is looked for, not asked for again
  around_.hurry();
  return true;
}

void SlurmJob::send() {
  sending_ = true;
  ++submissions_;
  around_.commands.run({"sbatch", "--parsable", (request_.spool / "job.sh").string()}, kSbatchLimit,
                       [self = shared_from_this()](const CommandResult& said) { self->answered(said); });
}

void SlurmJob::answered(const CommandResult& said) {
  sending_ = false;
  around_.hurry();
  if (said.ok()) {
    if (const auto job = read_sbatch(said.out)) return accept(*job);
  }
  in_doubt_ = said.ok() || said.timed_out || said.signal != 0 || is_in_doubt(said.err);
  if (in_doubt_)
    return remark(fmt::format("sbatch did not say whether it took the job ({}); it is looked for by its name",
                              said.timed_out     ? "no answer in time"
                              : said.signal != 0 ? fmt::format("ended by signal {}", said.signal)
                                                 : last_line(said.err)));
  const auto why = sbatch_refusal(said.err);
  if (takes_no_more(said.err)) return wait_for_room(why);
  end(fmt::format("refused by sbatch: {}", why), true, false);
  closed_ = true;
}

// The user has as many jobs in Slurm as he may: it is asked again when some may have ended.
void SlurmJob::wait_for_room(const std::string& why) {
  submissions_ = 0;
  send_again_s_ = around_.now_s() + room_pause_;
  room_pause_ = std::min(2 * room_pause_, kLongestRoomPause);
  remark(fmt::format("Slurm takes no further job of yours now ({}); it is asked again, at most every {} min",
                     why, kLongestRoomPause / 60));
}

void SlurmJob::look_for_room() {
  const auto late = waits_too_long();
  if (cancel_wanted_ || late) {
    end(cancel_wanted_ ? "cancelled before Slurm took it" : *late + ", and Slurm never took it",
        !cancel_wanted_, false);
    closed_ = true;
  } else if (around_.now_s() >= send_again_s_) {
    send_again_s_ = 0;
    send();
  }
}

void SlurmJob::accept(i64 job) {
  job_ = job;
  in_doubt_ = false;
  if (auto kept = keep_record(); !kept) remark(kept.error().message);
}

Expected<i64> SlurmJob::post(std::string_view kind, const nlohmann::json& body) {
  if (ended_) return fail(fmt::format("allocation {} has ended", request_.id));
  return mail_.post(kind, body);
}

Expected<void> SlurmJob::finish(bool now) {
  if (!spoke_) kill();  // nobody reads the inbox yet
  return post(spool::kFinish, {{"now", now}}).map([](i64) {});
}

void SlurmJob::kill() {
  if (closed_ || !mail_.ours()) return;
  cancel_wanted_ = true;
  dismiss();
  if (around_.options.existing_job > 0) return cancel_step();
  if (send_again_s_ > 0) return around_.hurry();
  if (!job_ || cancelling_) return;  // not known yet: cancelled as soon as it is
  cancelling_ = true;
  around_.commands.run({"scancel", std::to_string(*job_)}, kScancelLimit,
                       [self = shared_from_this()](const CommandResult& said) {
                         self->cancelling_ = false;
                         if (said.ok()) self->around_.hurry();  // else: again when Slurm was asked next
                       });
}

// Slurm's word is not all: one whose slurmctld lost its memory takes a running job for a waiting or an ended one, and an
// agent that stood still comes back. Whatever lives of it then, or later, finds this in its inbox.
void SlurmJob::dismiss() {
  if (dismissed_ || !mail_.bye_reason().empty()) return;
  dismissed_ = post(spool::kFinish, {{"now", true}}).has_value();
}

// The allocation is somebody's: only our step of it ends.
void SlurmJob::cancel_step() {
  around_.commands.run(squeue_of_steps(*job_), kScancelLimit,
                       [self = shared_from_this()](const CommandResult& said) {
                         for (const auto& step : read_steps(said.out))
                           if (step.name == self->name())
                             self->around_.commands.run({"scancel", "--signal=TERM", step.id}, kScancelLimit,
                                                        [](const CommandResult&) {});
                       });
}

void SlurmJob::started() {
  spoke_ = true;
  Started out{request_.id, fmt::format("Slurm job {}", job_ ? std::to_string(*job_) : name()),
              job_.value_or(0), std::nullopt, 0};
  if (!nodes_.empty()) out.where += " on " + nodes_;
  const auto& options = around_.options;
  const auto left = seconds_left_              ? seconds_left_
                    : options.existing_job > 0 ? options.existing_job_seconds_left
                                               : std::nullopt;
  if (left)
    out.seconds_left = *left - reserved_seconds(options);
  else if (options.existing_job == 0)
    out.seconds_left = usable_seconds(request_.seconds, options);
  if (adopted_ && seconds_left_) out.held_s = std::max(0.0, request_.seconds - *seconds_left_);
  around_.say(out);
}

void SlurmJob::look() {
  bool any = false;
  while (!ended_) {
    auto news = mail_.news();
    // How long an adopted one still has, Slurm must tell first.
    const bool speaks = news.has_value() || mail_.delivered() > 0;
    if (!spoke_ && speaks && (!adopted_ || runs_)) started();
    if (!news) break;
    any = true;
    around_.say(*news);
  }
  if (!ended_) look_for_folder();
  if (ended_ || (!any && over_since_s_ == 0)) return;
  const auto reason = mail_.bye_reason();
  if (reason.empty()) return;
  said_bye_s_ = around_.now_s();
  around_.hurry();
  end(reason, false, reason == "signal" || reason == "time limit");
}

// The agent is cut off with it, and can say nothing any more. A file system may be away for a moment.
void SlurmJob::look_for_folder() {
  constexpr double kAwayFor = 3;
  if (verdict_ || !mail_.gone()) return void(folder_gone_s_ = 0);
  if (folder_gone_s_ == 0) folder_gone_s_ = around_.now_s();
  if (around_.now_s() - folder_gone_s_ < kAwayFor) return;
  give_up(
      fmt::format("its folder {} was removed or replaced while it ran: what had not been read of it is lost",
                  request_.spool.string()),
      true, false);
  around_.hurry();
}

bool SlurmJob::is_this(const JobFacts& facts) const {
  return facts.name == name() && (!job_ || facts.id == *job_);
}

void SlurmJob::learn(const std::vector<JobFacts>& of_this_name, bool denied) {
  if (sending_ || closed_) return;
  if (send_again_s_ > 0) return look_for_room();
  const JobFacts* mine = nullptr;
  for (const JobFacts& facts : of_this_name)
    if (is_this(facts) && (mine == nullptr || facts.id < mine->id)) mine = &facts;
  if (mine == nullptr) {
    if (denied && ++denied_ >= kDenials) missing();
    return;
  }
  denied_ = 0;
  if (!job_) accept(mine->id);
  if (cancel_wanted_ && meaning_of(mine->state).phase != Phase::kEnded) kill();
  apply(*mine);
}

// Slurm has no such job: one in doubt is submitted again, one that was known is over.
void SlurmJob::missing() {
  denied_ = 0;
  if (ended_) {
    closed_ = true;
  } else if (verdict_) {
    end(verdict_->reason, verdict_->lost, verdict_->preempted);
    closed_ = true;
  } else if (job_) {
    end(fmt::format("Slurm no longer knows job {}, and its agent said no farewell", *job_), true, false);
    closed_ = true;
  } else if (cancel_wanted_ || submissions_ >= kMostSubmissions) {
    end(adopted_ ? "it was never submitted" : "sbatch could not submit it; see the remarks", !cancel_wanted_,
        adopted_);
    closed_ = true;
  } else {
    send();
  }
}

void SlurmJob::apply(const JobFacts& facts) {
  const Meaning meaning = meaning_of(facts.state);
  if (!facts.nodes.empty()) nodes_ = facts.nodes;
  if (meaning.phase == Phase::kEnded) {
    if (ended_) return void(closed_ = true);
    if (over_since_s_ == 0) over_since_s_ = around_.now_s();
    look();
    if (ended_) return void(closed_ = true);
    around_.hurry();
    if (verdict_) {
      end(verdict_->reason, verdict_->lost, verdict_->preempted);
      return void(closed_ = true);
    }
    const bool cancelled = cancel_wanted_ && meaning.blame == Blame::kNobody;
    if (!cancelled && around_.now_s() - over_since_s_ < kLastWords && (spoke_ || adopted_)) return;
    const bool bare = facts.reason.empty() || facts.reason == "None";
    end(fmt::format("Slurm job {} ended without its agent's farewell: {}{}", facts.id, facts.state,
                    bare ? "" : " (" + facts.reason + ")"),
        meaning.blame != Blame::kNobody, meaning.blame == Blame::kNobody);
    closed_ = true;
    return;
  }
  if (ended_) {  // it said its farewell: the job must go too, and must not start again
    const bool overdue = meaning.phase == Phase::kRunning && around_.now_s() - said_bye_s_ > kAfterBye;
    if (overdue || meaning.phase == Phase::kPending) kill();
    return;
  }
  if (meaning.phase == Phase::kPending) return waits(facts);
  runs_ = runs_ || meaning.phase == Phase::kRunning || meaning.phase == Phase::kSuspended;
  if (meaning.phase == Phase::kRunning && facts.seconds_left) seconds_left_ = facts.seconds_left;
  if (meaning.phase == Phase::kSuspended) remark(fmt::format("Slurm job {} is suspended", facts.id));
  if (meaning.phase == Phase::kUnknown)
    remark(fmt::format("Slurm job {} is in a state this version does not know: {}", facts.id, facts.state));
}

void SlurmJob::waits(const JobFacts& facts) {
  if (verdict_) return;
  if (mail_.delivered() > 0)  // its agent ran before: a second start would find a mailbox in use
    return give_up(fmt::format("Slurm job {} was put back into the queue ({})", facts.id, facts.state), false,
                   true);
  if (facts.reason != "None" && facts.reason != "Priority" && facts.reason != "Resources" &&
      !facts.reason.empty())
    remark(fmt::format("Slurm job {} waits: {}", facts.id, facts.reason));
  const double now = around_.now_s();
  if (!is_hopeless(facts.reason)) hopeless_since_s_ = 0;
  if (is_hopeless(facts.reason) && hopeless_since_s_ == 0) hopeless_since_s_ = now;
  std::string why;
  if (hopeless_since_s_ > 0 && now - hopeless_since_s_ > kHopelessFor)
    why = fmt::format("Slurm job {} cannot start: {}", facts.id, facts.reason);
  else if (const auto late = waits_too_long())
    why = fmt::format("Slurm job {} {} ({})", facts.id, *late, facts.reason);
  if (hopeless_since_s_ > 0) around_.hurry();
  if (!why.empty()) give_up(std::move(why), true, false);
}

std::optional<std::string> SlurmJob::waits_too_long() const {
  const double limit = around_.options.pending_s;
  if (limit <= 0 || around_.now_s() - born_s_ <= limit) return std::nullopt;
  return fmt::format("waited longer than {} min", limit / 60);
}

// Said when Slurm has let go of it: a run that ends with this word must leave no job in the queue.
void SlurmJob::give_up(std::string reason, bool lost, bool preempted) {
  verdict_ = Verdict{std::move(reason), lost, preempted};
  kill();
}

void SlurmJob::end(std::string reason, bool lost, bool preempted) {
  if (ended_) return;
  dismiss();
  ended_ = true;
  around_.say(Ended{request_.id, std::move(reason), lost, preempted});
}

void SlurmJob::remark(std::string text) {
  if (text == remarked_) return;
  remarked_ = text;
  around_.say(Notice{request_.id, std::move(text)});
}

void SlurmJob::abandon() {
  ended_ = closed_ = true;
}

}  // namespace sweep::launch
