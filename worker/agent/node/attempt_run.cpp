// The life of an attempt: start, watch, end.
#include "worker/agent/node/attempt_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/proc.h"
#include "base/time.h"
#include "runtime/attempt_token.h"
#include "schema/codec.h"
#include "schema/rank_launch.h"
#include "schema/spool.h"
#include "worker/agent/process/spawn.h"

namespace sweep::agent {

namespace {
constexpr auto kWatchTick = std::chrono::milliseconds(50);
constexpr auto kSweepTick = std::chrono::milliseconds(5);
// Seconds between SIGTERM and SIGKILL, at most, after a hang.
constexpr double kHungGrace = 1.0;
// Seconds that the peers of a failed rank have for writing their records.
constexpr double kRecordsWithin = 1.0;
// Seconds that ranks have for writing their flight recorders; those of a command ask other programs.
constexpr double kAnswerLimit = 2.0, kCommandAnswerLimit = 12.0;
// Seconds after SIGKILL until a survivor makes the node unclean.
constexpr double kSweepLimit = 5.0;

std::vector<i64> ranks_of(const NodePart& part) {
  std::vector<i64> out;
  for (i64 index = 0; index < part.ranks; ++index) out.push_back(part.rank(index));
  return out;
}

// The launch message of a rank.
RankLaunch launch_of(const AttemptContext& context, const NodePart& part, const AttemptResources& resources,
                     std::size_t index) {
  RankLaunch out;
  out.attempt_dir = resources.files->dir();
  out.attempt_file = resources.files->attempt_file();
  out.rendezvous_dir = resources.files->rendezvous();
  out.rank = part.rank(static_cast<i64>(index));
  out.local_rank = static_cast<i64>(index);
  out.world = part.attempt.trial.world();
  out.agent_pid = ::getpid();
  if (part.beside) {
    out.devices = context.node.devices_of(part.slots);
    if (context.options.bind) out.cores = cores_of_slot(part.slots[index], context.options.slots);
  }
  if (resources.door) {
    out.store = resources.door->socket();
    out.address = context.here.address;
    out.interface = context.here.interface;
  }
  return out;
}
}  // namespace

AttemptRun::AttemptRun(AttemptContext& context, NodePart part, std::function<void(AttemptRun&)> finished)
    : context_(context),
      part_(std::move(part)),
      finished_(std::move(finished)),
      watchdog_(part_.attempt.deadlines, ranks_of(part_)),
      processor_clock_([](pid_t pid) { return proc::processor_waits(std::to_string(pid)); }),
      peers_started_(part_.whole),
      timer_(context.io),
      report_(context.host, part_) {}

AttemptRun::~AttemptRun() {
  context_.zygote.withdraw(attempt().id);
}

void AttemptRun::start() {
  report_.started(unix_ns_now());
  ranks_.reset(part_);
  deadline_.set(attempt().deadlines.startup_s);
  arm();
  if (const auto ready = prepare(); !ready) {
    report_.set_start_error(ready.error().message);
    // A disk that takes nothing and a folder that is missing here are the node's fault, not the trial's.
    const ErrorKind kind = ready.error().kind;
    const bool by_node =
        kind == ErrorKind::kDiskFull || kind == ErrorKind::kUnwritable || kind == ErrorKind::kNotFound;
    report_.set_cause(by_node ? EndCause::kAgentStopping : EndCause::kStartFailed);
    stage_ = Stage::kSweeping;
    return deadline_.set(kSweepLimit);
  }
  // Libraries read variables when they are loaded, and a zygote has loaded them.
  const bool by_zygote = context_.options.zygote && !attempt().runs_command() &&
                         attempt().start == RankStart::kZygote && attempt().trial.env.empty() &&
                         !restart_.zygote_failed && context_.zygote.usable();
  for (std::size_t i = 0; i < ranks_.all().size() && starting(); ++i) launch(i, by_zygote);
}

Expected<void> AttemptRun::prepare() {
  if (!attempt().runs_command() && context_.options.rank_program.empty())
    return fail("the trial runs the built-in step, and the agent was started without --rank-program");
  SWEEP_TRY(find_working_folder(attempt()));
  const bool on_gpu = attempt().trial.hardware != "cpu";
  if (part_.beside && on_gpu)
    if (const auto why = context_.node.without_gpu(part_.slots); !why.empty()) return fail(why);
  SWEEP_GET(auto files, AttemptFiles::make(context_.options.spool, context_.rendezvous_root, part_));
  resources_.files.emplace(std::move(files));
  ranks_.open_logs(resources_.files->dir(), attempt().log_limit_bytes);
  if (!part_.whole) {
    auto door = RendezvousServer::open(
        context_.io, resources_.files->rendezvous() / "store", [this](i64 client, Frame frame) {
          // store_answer() brings the answer. Whatever else a rank sends is not passed on.
          if (frame.head.is_object())
            context_.host.send(StoreMessage{{attempt().id, client}, std::move(frame)});
        });
    if (!door) return tl::unexpected(door.error());
    resources_.door = std::move(*door);
  }
  SWEEP_TRY(ranks_.make_group());
  resources_.span.emplace(context_.node.begin(part_.slots, on_gpu, attempt().runs_command()));
  return {};
}

void AttemptRun::launch(std::size_t index, bool by_zygote) {
  RankLaunch wanted = launch_of(context_, part_, resources_, index);
  wanted.pgid = ranks_.group();
  if (by_zygote) {
    context_.zygote.start(wanted, attempt().id, [this, index](const Expected<pid_t>& pid) {
      restart_.zygote_failed = restart_.zygote_failed || !pid;
      launched(index, pid);
    });
    return;
  }
  Spawn command;
  const std::string text = dump(to_json(wanted));
  command.own_program = attempt().runs_command();
  if (command.own_program)
    command.argv = {std::filesystem::read_symlink("/proc/self/exe"), "command", "--launch", text};
  else
    command.argv = {context_.options.rank_program, "run", "--launch", text};
  if (!command.own_program) {
    auto variables = rank_variables_from(attempt().trial.env);
    if (!variables) return launched(index, tl::unexpected(variables.error()));
    command.variables = std::move(*variables);
  }
  command.token = attempt_token(context_.key, attempt().id);
  command.log = spool::rank_log(resources_.files->dir(), wanted.rank);
  command.group = ranks_.group();
  launched(index, spawn(command));
}

void AttemptRun::launched(std::size_t index, const Expected<pid_t>& pid) {
  {
    RankProcess& rank = ranks_.all()[index];
    rank.answered = true;
    // Our own program, which starts the ranks, is not on this node: no fault of the trial.
    unfit_ = unfit_ || (!pid && pid.error().kind == ErrorKind::kNotFound);
    if (!pid && report_.start_error().empty())
      report_.set_start_error(fmt::format("rank {} was not started: {}", rank.rank, pid.error().message));
    if (pid) rank.pid = *pid;
  }
  if (pid) {
    const auto status = context_.host.claim(*pid);
    ranks_.all()[index].outside_pid = status ? *pid : outside_pid(context_.inside, *pid);
    // These may start the attempt again: no reference to a rank is kept over them.
    if (status) exited(*pid, *status);
    if (!starting()) context_.host.reap();
  }
  if (ranks_.all_answered()) all_answered();
}

void AttemptRun::all_answered() {
  if (!starting()) return;
  if (!report_.start_error().empty()) {
    report_.set_cause(unfit_ ? EndCause::kAgentStopping : EndCause::kStartFailed);
    return terminate();
  }
  AttemptStarted started{attempt().id, {}, report_.started_unix_ns()};
  for (const RankProcess& rank : ranks_.all()) started.pids.push_back(rank.outside_pid);
  context_.host.send(std::move(started));
  stage_ = Stage::kRunning;
  deadline_.clear();
  advance();
}

void AttemptRun::arm() {
  timer_.expires_after(stage_ == Stage::kSweeping ? kSweepTick : kWatchTick);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || stage_ == Stage::kFinished) return;
    watch();
    advance();
    if (stage_ != Stage::kFinished) arm();
  });
}

// One look at the heartbeats, the logs and the load.
void AttemptRun::watch() {
  if (!resources_.files || starting() || stage_ == Stage::kSweeping) return;
  std::vector<Heartbeat> seen;
  std::vector<pid_t> pids;
  bool measuring = true;
  for (const RankProcess& rank : ranks_.all()) {
    seen.push_back(resources_.files->heartbeat(static_cast<i64>(seen.size())));
    seen.back().alive = !rank.ended;
    measuring = measuring && seen.back().alive && seen.back().phase == Phase::kStep;
    pids.push_back(rank.pid);
    rank.log->look();
  }
  resources_.span->sample(pids, measuring);
  // A rehearsal's ranks compute on this machine's processors, which others use too.
  const double now_s = attempt().is_rehearsal() ? processor_clock_.at(steady_s(), pids) : steady_s();
  const auto found = watchdog_.look(seen, now_s);
  // A node that starts late has a deadline of its own for that.
  if (!peers_started_) watchdog_.reset_idle();
  if (!found || stage_ != Stage::kRunning) return;
  // A dead child explains more than a silent one.
  context_.host.reap();
  if (stage_ != Stage::kRunning) return;
  spdlog::warn("attempt {}: {}", attempt().id, found->why);
  switch (found->verdict) {
    case Watchdog::Verdict::kHang:
      return ask_ranks(EndCause::kHang, found->why, found->rank);
    case Watchdog::Verdict::kTimeout:
      return ask_ranks(EndCause::kTimeout, found->why, found->rank);
    case Watchdog::Verdict::kDoesNotExit:
      return ask_ranks(EndCause::kDone, found->why, found->rank);
  }
}

bool AttemptRun::exited(pid_t pid, int status) {
  if (ranks_.leader_ended(pid)) return true;
  RankProcess* rank = ranks_.running_as(pid);
  if (rank == nullptr) return false;
  rank->ended = true;
  rank->status = status;
  rank->ended_unix_ns = unix_ns_now();
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !rank->killed_by_agent)
    rank->oom_killed = resources_.span->oom_killed(rank->outside_pid);
  advance();
  return true;
}

void AttemptRun::advance() {
  if (starting() && deadline_.over()) {
    report_.set_start_error(
        fmt::format("the ranks were not started within {:.1f} s", attempt().deadlines.startup_s));
    // The second start needs no zygote.
    restart_.zygote_failed = true;
    if (context_.zygote.pid() > 0) ::kill(context_.zygote.pid(), SIGKILL);
    report_.set_cause(EndCause::kStartFailed);
    terminate();
  }
  if (stage_ == Stage::kRunning && std::ranges::any_of(ranks_.all(), [&](const auto& rank) {
        return has_failed(rank, *resources_.files);
      }))
    await_records();
  if (stage_ == Stage::kAsking &&
      (deadline_.over() || ranks_.all_ended() || ranks_.flights_written(resources_.files->dir())))
    give_up();
  const bool before_sweep =
      stage_ == Stage::kRunning || stage_ == Stage::kAwaitingRecords || stage_ == Stage::kTerminating;
  if (before_sweep && ranks_.all_ended()) {
    stage_ = Stage::kSweeping;
    deadline_.set(kSweepLimit);
    arm();
  } else if (stage_ == Stage::kAwaitingRecords && deadline_.over()) {
    terminate();
  } else if (stage_ == Stage::kTerminating && deadline_.over()) {
    stage_ = Stage::kSweeping;
    deadline_.set(kSweepLimit);
  }
  if (stage_ == Stage::kSweeping) sweep();
}

void AttemptRun::await_records() {
  AgentEvidence evidence = rank_evidence(ranks_, resources_, watchdog_);
  const auto full = std::ranges::find_if(
      ranks_.all(), [&](const RankProcess& rank) { return had_no_room(rank, *resources_.files); });
  if (full != ranks_.all().end())
    evidence.why =
        fmt::format("rank {} left no record: {} cannot be written; its disk may be full, or read-only",
                    full->rank, resources_.files->dir().string());
  report_.rank_failed(std::move(evidence));
  stage_ = Stage::kAwaitingRecords;
  deadline_.set(kRecordsWithin);
}

// Ranks that stand still are asked for their flight recorders and get a moment to answer. Without such ranks
// it goes on at once.
void AttemptRun::ask_ranks(EndCause cause, const std::string& why, std::optional<i64> rank) {
  report_.intend(cause, why, rank);
  stage_ = Stage::kAsking;
  deadline_.set(attempt().runs_command() ? kCommandAnswerLimit : kAnswerLimit);
  if (!resources_.files) return give_up();
  ranks_.ask_for_flights(resources_.files->rendezvous());
  if (ranks_.flights_written(resources_.files->dir())) give_up();
}

void AttemptRun::give_up() {
  const bool prepared = resources_.files && resources_.span;
  report_.settle(prepared ? rank_evidence(ranks_, resources_, watchdog_) : AgentEvidence());
  terminate();
}

void AttemptRun::terminate() {
  context_.zygote.withdraw(attempt().id);
  ranks_.terminate();
  stage_ = Stage::kTerminating;
  // A rank that stood still for its whole deadline does not answer now.
  const double grace = attempt().deadlines.grace_s;
  deadline_.set(report_.cause() == EndCause::kHang ? std::min(grace, kHungGrace) : grace);
}

void AttemptRun::end(EndCause cause, bool at_once) {
  if (stage_ == Stage::kFinished) return;
  report_.set_cause(cause);
  if (stage_ < Stage::kTerminating) terminate();
  if (at_once && stage_ == Stage::kTerminating) {
    deadline_.set(0);
    advance();
  }
}

void AttemptRun::peer_ended(EndCause cause) {
  if (stage_ > Stage::kRunning || report_.cause()) return;
  if (cause == EndCause::kRankFailed && stage_ == Stage::kRunning) return await_records();
  ask_ranks(cause, "", {});
}

void AttemptRun::store_answer(i64 client, const Frame& answer) {
  if (resources_.door) resources_.door->answer(client, answer);
}

// SIGKILL to the group and to whatever else carries the attempt's mark, until nothing is left or the limit is
// reached. Then the end is reported, or the attempt starts again.
void AttemptRun::sweep() {
  ranks_.kill();
  const auto left = kill_leftovers(context_, attempt().id);
  const bool gone = ranks_.all_ended() && left.empty();
  const std::string gpu = resources_.span && gone ? resources_.span->still_on_gpu(ranks_.pids()) : "";
  if (!gone || !gpu.empty()) {
    if (!deadline_.over()) return;
    if (!left.empty())
      report_.set_cleanup_failure(fmt::format("survived SIGKILL: {}", fmt::join(left, ", ")));
    else
      report_.set_cleanup_failure(gpu.empty() ? "a rank's end could not be waited for" : gpu);
  } else if (report_.cause() == EndCause::kStartFailed && restart_.zygote_failed && !restart_.done) {
    // A zygote that died while it was asked may or may not have forked ranks: all of them are gone now.
    spdlog::warn("attempt {} starts again by exec: {}", attempt().id, report_.start_error());
    restart_.done = true;
    stage_ = Stage::kStarting;
    resources_.door.reset();
    resources_.files.reset();
    resources_.span.reset();
    report_.start_again();
    return start();
  }
  stage_ = Stage::kFinished;
  report_.send(ranks_, resources_);
  timer_.cancel();
  finished_(*this);
}

}  // namespace sweep::agent
