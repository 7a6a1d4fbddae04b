// The life of an attempt: start, watch, end.
#include "worker/agent/node/attempt_run.h"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/time.h"
#include "runtime/attempt_token.h"
#include "schema/codec.h"
#include "schema/rank_launch.h"
#include "schema/spool.h"
#include "worker/agent/evidence/proc_facts.h"
#include "worker/agent/process/spawn.h"

namespace sweep::agent {

namespace {
constexpr auto kWatchTick = std::chrono::milliseconds(50);
constexpr auto kSweepTick = std::chrono::milliseconds(5);
constexpr double kHungGrace = 1.0;  // seconds between SIGTERM and SIGKILL, at most, after a hang
// Seconds that the peers of a failed rank have for writing their records.
constexpr double kRecordsWithin = 1.0;
constexpr double kSweepLimit = 5.0;  // seconds after SIGKILL before a survivor taints the node

std::vector<i64> ranks_of(const NodePart& part) {
  std::vector<i64> out;
  for (i64 index = 0; index < part.ranks; ++index) out.push_back(part.rank(index));
  return out;
}
}  // namespace

AttemptRun::AttemptRun(AttemptContext& context, NodePart part, std::function<void(AttemptRun&)> finished)
    : context_(context),
      part_(std::move(part)),
      attempt_(part_.attempt),
      finished_(std::move(finished)),
      watchdog_(attempt_.deadlines, ranks_of(part_)),
      peers_started_(part_.whole),
      timer_(context.io) {}

AttemptRun::~AttemptRun() {
  context_.zygote.withdraw(attempt_.id);
  if (anchor_ > 0) ::kill(-anchor_, SIGKILL);
}

void AttemptRun::start() {
  started_unix_ns_ = unix_ns_now();
  ranks_.resize(static_cast<std::size_t>(part_.ranks));
  set_deadline(attempt_.deadlines.startup_s);
  arm();
  if (const auto ready = prepare(); !ready) {
    start_error_ = ready.error().message;
    set_cause(EndCause::kStartFailed);
    stage_ = Stage::kSweeping;
    return set_deadline(kSweepLimit);
  }
  const bool by_zygote = context_.options.zygote && !attempt_.command && attempt_.start != "exec" &&
                         !zygote_failed_ && context_.zygote.usable();
  for (std::size_t i = 0; i < ranks_.size() && stage_ == Stage::kStarting; ++i)
    launch(static_cast<i64>(i), by_zygote);
}

Expected<void> AttemptRun::prepare() {
  if (part_.beside && attempt_.trial.hardware != "cpu")
    if (const auto why = context_.node.without_gpu(part_.slots); !why.empty()) return fail(why);
  auto files = AttemptFiles::make(context_.options.spool, context_.rendezvous_root, part_);
  if (!files) return tl::unexpected(files.error());
  files_.emplace(std::move(*files));
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    ranks_[i].log =
        std::make_unique<RankLog>(spool::rank_log(files_->dir(), world_rank(i)), attempt_.log_limit_bytes);
  if (!part_.whole) {
    auto door = RendezvousServer::open(
        context_.io, files_->rendezvous() / "store",
        [this](i64 client, Frame frame) { context_.host.ask_store(attempt_.id, client, std::move(frame)); });
    if (!door) return tl::unexpected(door.error());
    door_ = std::move(*door);
  }
  const auto anchor = spawn_anchor();
  if (!anchor) return tl::unexpected(anchor.error());
  anchor_ = *anchor;
  span_.emplace(context_.node.begin(part_.slots, attempt_.trial.hardware != "cpu"));
  return {};
}

void AttemptRun::launch(i64 index, bool by_zygote) {
  RankLaunch wanted;
  wanted.attempt_dir = files_->dir();
  wanted.rendezvous_dir = files_->rendezvous();
  wanted.rank = part_.rank(index);
  wanted.local_rank = index;
  wanted.world = attempt_.trial.world();
  wanted.agent_pid = ::getpid();
  wanted.pgid = anchor_;
  if (part_.beside) {
    wanted.devices = context_.node.devices_of(part_.slots);
    if (context_.options.bind)
      wanted.cores = cores_of_slot(part_.slots[static_cast<std::size_t>(index)], context_.options.slots);
  }
  if (door_) {
    wanted.store = door_->socket();
    wanted.address = context_.here.address;
    wanted.interface = context_.here.interface;
  }
  if (by_zygote) {
    context_.zygote.start(wanted, attempt_.id, [this, index](const Expected<pid_t>& pid) {
      zygote_failed_ = zygote_failed_ || !pid;
      launched(index, pid);
    });
    return;
  }
  Spawn command;
  const std::string text = dump(to_json(wanted));
  if (attempt_.command)
    command.argv = {std::filesystem::read_symlink("/proc/self/exe"), "command", "--launch", text};
  else
    command.argv = {context_.options.rank_program, "run", "--launch", text};
  command.token = attempt_token(context_.key, attempt_.id);
  command.log = spool::rank_log(files_->dir(), wanted.rank);
  command.group = anchor_;
  launched(index, spawn(command));
}

void AttemptRun::launched(i64 index, const Expected<pid_t>& pid) {
  Rank& rank = ranks_[static_cast<std::size_t>(index)];
  rank.answered = true;
  if (!pid) {
    if (start_error_.empty())
      start_error_ = fmt::format("rank {} was not started: {}", part_.rank(index), pid.error().message);
  } else {
    rank.pid = *pid;
    const auto status = context_.host.claim(*pid);
    rank.outside_pid = status ? *pid : outside_pid(context_.inside, *pid);
    if (status) exited(*pid, *status);
    if (stage_ != Stage::kStarting) context_.host.reap();  // it came too late to be wanted
  }
  if (std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.answered; })) all_answered();
}

void AttemptRun::all_answered() {
  if (stage_ != Stage::kStarting) return;
  if (!start_error_.empty()) {
    set_cause(EndCause::kStartFailed);
    return terminate();
  }
  nlohmann::json pids = nlohmann::json::array();
  for (const Rank& rank : ranks_) pids.push_back(rank.outside_pid);
  context_.host.send(spool::kStarted,
                     {{"attempt", attempt_.id}, {"pids", std::move(pids)}, {"unix_ns", started_unix_ns_}});
  stage_ = Stage::kRunning;
  deadline_.reset();
  advance();
}

void AttemptRun::arm() {
  timer_.expires_after(stage_ == Stage::kSweeping ? kSweepTick : kWatchTick);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) tick();
  });
}

void AttemptRun::tick() {
  if (stage_ == Stage::kFinished) return;
  watch();
  advance();
  if (stage_ != Stage::kFinished) arm();
}

// One look at the heartbeats, the logs and the load.
void AttemptRun::watch() {
  if (!files_ || stage_ == Stage::kStarting || stage_ == Stage::kSweeping) return;
  std::vector<Heartbeat> seen;
  std::vector<pid_t> pids;
  bool measuring = true;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    seen.push_back(files_->heartbeat(static_cast<i64>(i)));
    seen.back().alive = !ranks_[i].ended;
    measuring = measuring && seen.back().alive && seen.back().phase == Phase::kStep;
    pids.push_back(ranks_[i].pid);
    ranks_[i].log->look();
  }
  span_->sample(pids, measuring);
  const auto found = watchdog_.look(seen, steady_s());
  if (!peers_started_) watchdog_.excuse();  // a node that starts late has a deadline of its own for that
  if (!found || stage_ != Stage::kRunning) return;
  context_.host.reap();  // a dead child explains more than a silence does
  if (stage_ != Stage::kRunning) return;
  spdlog::warn("attempt {}: {}", attempt_.id, found->why);
  nlohmann::json why = {{"why", found->why}, {"rank", found->rank}};
  switch (found->verdict) {
    case Watchdog::Verdict::kHang:
      return ask_ranks(EndCause::kHang, std::move(why));
    case Watchdog::Verdict::kTimeout:
      return ask_ranks(EndCause::kTimeout, std::move(why));
    case Watchdog::Verdict::kLingers:
      return ask_ranks(EndCause::kDone, std::move(why));
  }
}

bool AttemptRun::exited(pid_t pid, int status) {
  if (pid == anchor_ && pid > 0) {
    anchor_ = 0;  // its number may be used again: no more signals to it
    return true;
  }
  const auto rank =
      std::find_if(ranks_.begin(), ranks_.end(), [&](const Rank& r) { return r.pid == pid && !r.ended; });
  if (rank == ranks_.end() || pid <= 0) return false;
  rank->ended = true;
  rank->status = status;
  rank->ended_unix_ns = unix_ns_now();
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !rank->killed_by_agent)
    rank->oom_killed = span_->oom_killed(rank->outside_pid);
  advance();
  return true;
}

std::vector<i64> AttemptRun::process_ids() const {
  std::vector<i64> pids;
  for (const Rank& rank : ranks_) {
    if (rank.pid > 0) pids.push_back(rank.pid);
    if (rank.outside_pid > 0) pids.push_back(rank.outside_pid);
  }
  return pids;
}

bool AttemptRun::all_ended() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.ended || r.pid == 0; });
}

bool AttemptRun::failed(const Rank& rank, i64 index) const {
  if (!rank.ended) return false;
  if (!WIFEXITED(rank.status) || WEXITSTATUS(rank.status) != 0) return true;
  const auto record = files_->record(part_.rank(index));
  return !record || !*record || (*record)->outcome != Outcome::kOk;
}

// The one place where the stage moves on.
void AttemptRun::advance() {
  if (stage_ == Stage::kStarting && past_deadline()) {
    start_error_ = fmt::format("the ranks were not started within {:.1f} s", attempt_.deadlines.startup_s);
    zygote_failed_ = true;  // an exec needs no zygote
    if (context_.zygote.pid() > 0) ::kill(context_.zygote.pid(), SIGKILL);
    set_cause(EndCause::kStartFailed);
    terminate();
  }
  if (stage_ == Stage::kRunning) {
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      if (failed(ranks_[i], static_cast<i64>(i))) {
        set_cause(EndCause::kRankFailed, collect_evidence());
        stage_ = Stage::kAwaitingRecords;
        set_deadline(kRecordsWithin);
        break;
      }
  }
  if (stage_ == Stage::kAsking && (past_deadline() || all_ended() || answered())) give_up();
  const bool before_sweep =
      stage_ == Stage::kRunning || stage_ == Stage::kAwaitingRecords || stage_ == Stage::kTerminating;
  if (before_sweep && all_ended()) {
    stage_ = Stage::kSweeping;
    set_deadline(kSweepLimit);
    arm();
  } else if (stage_ == Stage::kAwaitingRecords && past_deadline()) {
    terminate();
  } else if (stage_ == Stage::kTerminating && past_deadline()) {
    stage_ = Stage::kSweeping;
    set_deadline(kSweepLimit);
  }
  if (stage_ == Stage::kSweeping) sweep();
}

void AttemptRun::terminate() {
  context_.zygote.withdraw(attempt_.id);
  for (Rank& rank : ranks_)
    if (!rank.ended) rank.killed_by_agent = true;
  if (anchor_ > 0) {
    ::kill(-anchor_, SIGTERM);
    ::kill(-anchor_, SIGCONT);  // a rank that was stopped can be asked only once it goes on
  }
  stage_ = Stage::kTerminating;
  // A rank that stood still for its whole deadline has nothing more to say.
  const double grace = attempt_.deadlines.grace_s;
  set_deadline(cause_ == EndCause::kHang ? std::min(grace, kHungGrace) : grace);
}

void AttemptRun::end(EndCause cause, bool at_once) {
  if (stage_ == Stage::kFinished) return;
  set_cause(cause);
  if (stage_ < Stage::kTerminating) terminate();
  if (at_once && stage_ == Stage::kTerminating) {
    deadline_ = std::chrono::steady_clock::now();
    advance();
  }
}

void AttemptRun::peer_ended(EndCause cause) {
  if (stage_ > Stage::kRunning || cause_) return;
  if (cause == EndCause::kRankFailed && stage_ == Stage::kRunning) {
    set_cause(cause, collect_evidence());
    stage_ = Stage::kAwaitingRecords;
    return set_deadline(kRecordsWithin);
  }
  ask_ranks(cause, nlohmann::json::object());
}

void AttemptRun::store_answer(i64 client, const Frame& answer) {
  if (door_) door_->answer(client, answer);
}

// SIGKILL to the group and to whatever else carries the attempt's mark, until nothing is left or the limit is
// reached.
void AttemptRun::sweep() {
  if (anchor_ > 0) {
    for (Rank& rank : ranks_)
      if (!rank.ended) rank.killed_by_agent = true;
    ::kill(-anchor_, SIGKILL);
  }
  const auto left = kill_leftovers();
  const std::string gpu = span_ && all_ended() && left.empty() ? span_->still_on_gpu(process_ids()) : "";
  if (all_ended() && left.empty() && gpu.empty())
    return cause_ == EndCause::kStartFailed && may_start_again() ? start() : finish();
  if (!past_deadline()) return;
  cleanup_failure_ = left.empty() ? gpu : fmt::format("survived SIGKILL: {}", fmt::join(left, ", "));
  if (cleanup_failure_.empty()) cleanup_failure_ = "a rank's end could not be waited for";
  finish();
}

// A zygote that died while it was asked may or may not have forked ranks: all of them are gone now, so the
// attempt starts afresh, once, by exec.
bool AttemptRun::may_start_again() {
  if (!zygote_failed_ || started_again_) return false;
  spdlog::warn("attempt {} starts again by exec: {}", attempt_.id, start_error_);
  started_again_ = true;
  stage_ = Stage::kStarting;
  ranks_.clear();
  door_.reset();
  files_.reset();
  span_.reset();
  cause_.reset();
  start_error_.clear();
  return true;
}

std::vector<std::string> AttemptRun::kill_leftovers() {
  std::vector<std::string> left;
  const auto end_it = [&](pid_t pid, char state, const std::string& command) {
    ::kill(pid, SIGKILL);
    left.push_back(fmt::format("{} (pid {}, state {})", command, outside_pid(context_.inside, pid), state));
  };
  const bool alone = context_.host.alone();
  std::vector<pid_t> seen = {context_.zygote.pid(), ::getppid()};
  for (const auto& child : children())
    if (context_.host.spared(child.pid)) seen.push_back(child.pid);
  for (const auto& process : marked_processes(context_.key)) {
    const bool ours = process.attempt == attempt_.id || (process.attempt == 0 && alone);
    if (!ours || std::find(seen.begin(), seen.end(), process.pid) != seen.end()) continue;
    seen.push_back(process.pid);
    end_it(process.pid, process.state, process.command);
  }
  if (!alone) return left;
  for (const auto& child : children())  // adopted, its mark wiped
    if (std::find(seen.begin(), seen.end(), child.pid) == seen.end())
      end_it(child.pid, child.state, child.command);
  return left;
}

void AttemptRun::set_cause(EndCause cause, nlohmann::json evidence) {
  if (cause_) return;  // the first one is the cause
  cause_ = cause;
  evidence_ = std::move(evidence);
  // Whether a failed start is final is known later; the AttemptEnd says it then.
  if (!part_.whole && cause != EndCause::kStartFailed)
    context_.host.send(kTrouble, {{"attempt", attempt_.id}, {"cause", to_string(cause)}});
}

void AttemptRun::set_deadline(double seconds) {
  deadline_ =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(Seconds(std::min(seconds, 1e7)));
}

bool AttemptRun::past_deadline() const {
  return deadline_ && std::chrono::steady_clock::now() >= *deadline_;
}

}  // namespace sweep::agent
