#include "worker/command/command_rank.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <utility>

#include "base/files.h"
#include "base/time.h"
#include "runtime/progress_writer.h"
#include "runtime/rank_process.h"
#include "schema/codec.h"
#include "schema/spool.h"
#include "worker/command/early_end.h"
#include "worker/command/phantom_place.h"
#include "worker/command/rank_process_watch.h"
#include "worker/command/trainer_output.h"
#include "worker/command/trainer_stacks.h"
#include "worker/command/verdict.h"

namespace sweep::command {
namespace {

namespace fs = std::filesystem;

constexpr int kLookMs = 100;        // how often the report and the log are looked at
constexpr double kLeaveWithin = 5;  // seconds a trainer has to leave after it reported an error
// Seconds, and share of a step's deadline, that a trainer has to leave after it reported all of its steps and its
// end: before the agent would call its silence a hang.
constexpr double kExitWithin = 60, kExitShare = 0.75;
constexpr int kCountersMs = 200;  // a program on phantom GPUs has to write their counters before it is ended
constexpr int kMostLastLooks = 60;  // looks at what the program left unread

// One process a node: the rank that started it leaves a file when it has ended, for the node's other ranks:
// its exit code, or its signal as a negative number.
fs::path node_end_file(const RankLaunch& launch, i64 node) {
  return fs::path(launch.rendezvous_dir) / fmt::format("command_{}.ended", node);
}

class CommandRank {
 public:
  CommandRank(const RankLaunch& launch, RankRecord& record)
      : launch_(launch),
        record_(record),
        progress_(spool::rank_progress(launch.attempt_dir, launch.rank).string()),
        process_(launch.rank),
        stacks_(launch) {}

  Expected<ProgramEnd> run();
  bool knows_its_attempt() const { return attempt_.id != 0; }
  ProgressWriter& progress() { return progress_; }

 private:
  Expected<Meeting> meet();
  bool starts_the_program() const { return !command_.per_node || launch_.local_rank == 0; }
  i64 node() const { return launch_.rank / std::max<i64>(1, attempt_.trial.gpus_per_node); }
  // The rank that starts a node's command and writes its log.
  i64 starting_rank() const { return command_.per_node ? launch_.rank - launch_.local_rank : launch_.rank; }
  Expected<void> prepare_to_follow();
  ProgramEnd follow();
  std::optional<TrainerProcess::End> program_end(int wait_ms);
  void wait_for_an_end(int wait_ms) const;
  // The reason for which the rank ends the program, or no longer waits for its end.
  enum class Leaving { kStopped, kComplete, kLingers };
  void consider_leaving(double now_s);
  bool was_stopped(const TrainerProcess::End&);
  bool node_is_complete();
  void end_the_program(ProgramEnd&);
  bool look();
  void show_progress();
  void describe();
  const TrainerReport& report() const { return output_->report(); }

  RankLaunch launch_;
  RankRecord& record_;
  Attempt attempt_;
  CommandSpec command_;
  ProgressWriter progress_;
  RankProcessWatch process_;
  std::optional<TrainerOutput> output_;
  std::optional<ReservedPort> port_;
  std::optional<TrainerProcess> program_;
  TrainerStacks stacks_;
  // News that ranks of this attempt tell each other: that it ends early; that some rank reports steps.
  struct Told {
    EarlyEnd early_end;
    Announcement steps_begun;
  };
  std::optional<Told> told_;
  // The state shown on the heartbeat page so far, the time when the trainer's first error was seen, and the
  // time until which the trainer may go on.
  struct {
    i64 steps = 0, lines = 0;
    bool process_is_gone = false, complete = false;
    std::optional<i64> error_unix_ns;
    std::optional<std::pair<double, Leaving>> leaves_by;
  } shown_;
};

Expected<Meeting> CommandRank::meet() {
  if (launch_.rank != 0)
    return await_meeting(launch_,
                         std::chrono::milliseconds(static_cast<i64>(attempt_.deadlines.startup_s * 1000)));
  SWEEP_GET(auto port, ReservedPort::reserve());
  port_.emplace(std::move(port));
  return announce_meeting(launch_, *port_);
}

Expected<ProgramEnd> CommandRank::run() {
  progress_.phase(Phase::kInit);
  SWEEP_GET(attempt_, read_attempt(launch_));
  launch_.local_rank = local_rank_of(attempt_, launch_);
  record_.attempt = attempt_.id;
  SWEEP_GET(command_, command_from(attempt_.trial.program));
  if (!attempt_.starts_every_rank()) {
    SWEEP_GET(command_, without_launcher(std::move(command_)));
  }
  SWEEP_TRY(prepare_to_follow());
  SWEEP_GET(const auto meeting, meet());
  if (starts_the_program()) {
    SWEEP_GET(const auto prepared, prepare(command_, attempt_, launch_, meeting));
    SWEEP_GET(auto started, TrainerProcess::start(prepared));
    program_.emplace(std::move(started));
  }
  const ProgramEnd end = follow();
  conclude(record_, attempt_, report(), end);
  if (shown_.error_unix_ns)
    record_.ended_unix_ns =
        failed_at(*report().error(), *shown_.error_unix_ns - age_ns(), *shown_.error_unix_ns);
  describe();
  return end;
}

Expected<void> CommandRank::prepare_to_follow() {
  told_.emplace(
      Told{EarlyEnd(attempt_, launch_, command_.stop_after_steps), Announcement(launch_, "steps_begun")});
  SWEEP_GET(auto output, TrainerOutput::open(results_file(launch_, launch_.rank),
                                             spool::rank_log(launch_.attempt_dir, starting_rank()), command_,
                                             starts_the_program()));
  output_.emplace(std::move(output));
  return {};
}

// Waits for the end of the program, or of the launcher's process that reports as this rank.
void CommandRank::wait_for_an_end(int wait_ms) const {
  const bool gone = shown_.process_is_gone;
  std::array<pollfd, 2> ends{pollfd{program_ ? program_->handle() : -1, POLLIN, 0},
                             pollfd{gone ? -1 : process_.handle(), POLLIN, 0}};
  ::poll(ends.data(), ends.size(), wait_ms);
}

// None: it still runs.
std::optional<TrainerProcess::End> CommandRank::program_end(int wait_ms) {
  wait_for_an_end(wait_ms);
  if (process_.ended_unix_ns()) shown_.process_is_gone = true;
  if (program_) return program_->wait_ms(0);
  const auto said = files::read_from(node_end_file(launch_, node()), 0, 64);
  if (!said || said->empty()) return std::nullopt;
  TrainerProcess::End end;
  const int code = std::atoi(said->c_str());
  (code < 0 ? end.signal : end.exit_code) = std::abs(code);
  return end;
}

// True once this rank, which is complete, and those ranks of its node that report too are complete. Until
// then this rank makes progress: if one of the others hangs, that one is the cause.
bool CommandRank::node_is_complete() {
  const auto marker = [this](i64 rank) {
    return fs::path(launch_.rendezvous_dir) / fmt::format("command_{}.complete", rank);
  };
  if (!std::exchange(shown_.complete, true)) (void)files::write_atomically(marker(launch_.rank), "");
  const i64 first = launch_.rank - launch_.local_rank;
  const i64 end = std::min(launch_.world, first + std::max<i64>(1, attempt_.trial.gpus_per_node));
  for (i64 rank = first; rank < end; ++rank) {
    std::error_code ec;
    if (fs::exists(marker(rank), ec) || files::size_of(results_file(launch_, rank)) == 0) continue;
    progress_.part(Part::kNone);
    return false;
  }
  return true;
}

void CommandRank::consider_leaving(double now_s) {
  EarlyEnd& early = told_->early_end;
  if (shown_.leaves_by && shown_.leaves_by->second != Leaving::kComplete) return;
  if (early.is_due(report().steps()))
    shown_.leaves_by.emplace(now_s + early.settle_s(), Leaving::kStopped);
  else if (report().error())
    shown_.leaves_by.emplace(now_s + kLeaveWithin, Leaving::kLingers);
  else if (!shown_.leaves_by && is_complete(report(), attempt_.measure) && node_is_complete())
    shown_.leaves_by.emplace(now_s + std::min(kExitWithin, kExitShare * attempt_.deadlines.step_s),
                             Leaving::kComplete);
}

// A trainer may end by itself, or fail because its peers were ended, before it is ended.
bool CommandRank::was_stopped(const TrainerProcess::End& end) {
  if (shown_.leaves_by && shown_.leaves_by->second == Leaving::kStopped) return true;
  const bool failed = shown_.leaves_by && shown_.leaves_by->second == Leaving::kLingers;
  return !failed && end.exit_code != 0 && told_->early_end.is_due(report().steps(), true);
}

ProgramEnd CommandRank::follow() {
  ProgramEnd out;
  out.own = program_.has_value();
  out.launches_others = command_.per_node;
  bool read_all = true;
  while (true) {
    const auto ended = program_end(read_all ? kLookMs : 0);
    read_all = look();
    stacks_.answer_requests();
    if (ended) {
      out.end = *ended;
      out.stopped = was_stopped(*ended);
      break;
    }
    consider_leaving(steady_s());
    if (!shown_.leaves_by || steady_s() < shown_.leaves_by->first) continue;
    out.lingered = shown_.leaves_by->second == Leaving::kLingers;
    out.stopped = !out.lingered;
    break;
  }
  end_the_program(out);
  return out;
}

void CommandRank::end_the_program(ProgramEnd& out) {
  if (program_ && !out.end.exit_code && !out.end.signal) {
    if (on_phantoms()) {
      program_->send(phantom_counters_signal());
      (void)program_->wait_ms(kCountersMs);
    }
    program_->send(SIGKILL);
    out.end = program_->wait_ms(-1).value_or(TrainerProcess::End{});
  }
  for (int i = 0; i < kMostLastLooks && !look(); ++i) progress_.part(Part::kNone);
  output_->finish();
  const bool spoke = report().has_ended() || report().error();
  if (!spoke && !out.stopped && !out.end.signal) out.vanished_unix_ns = process_.ended_unix_ns();
  if (!program_ || !command_.per_node) return;
  const int code = out.stopped ? 0 : out.end.exit_code.value_or(-out.end.signal.value_or(0));
  (void)files::write_atomically(node_end_file(launch_, node()), std::to_string(code) + "\n");
}

// False: there is more to read.
bool CommandRank::look() {
  const bool all = output_->look();
  if (command_.per_node) process_.follow(report());
  if (report().error() && !shown_.error_unix_ns) shown_.error_unix_ns = unix_ns_now();
  show_progress();
  return all;
}

// Steps and lines of the report are progress. Until its first step the growth of its program's log is too:
// downloads, compilers and data sets take their time there. A silent rank is judged by that log
// alone, until another rank reports steps: from then on that one shows whether they make progress.
void CommandRank::show_progress() {
  const Phase phase = phase_of(report(), attempt_.measure);
  if (phase != progress_.current()) progress_.phase(phase);
  if (report().last_step() > attempt_.measure.warmup_steps && !record_.startup_ns)
    record_.startup_ns = age_ns();
  for (; shown_.steps < static_cast<i64>(report().steps().size()); ++shown_.steps) progress_.begin_step();
  const bool grown = output_->log_has_grown();
  const bool spoke = report().lines() != std::exchange(shown_.lines, report().lines());
  const bool silent = report().last_step() == 0;
  if (launch_.world > 1 && !silent) told_->steps_begun.tell();
  const bool others = launch_.world > 1 && silent && !report().has_begun() && told_->steps_begun.is_told();
  if (spoke || (grown && silent) || others) progress_.part(Part::kNone);
}

void CommandRank::describe() {
  record_.effective.command = command_.argv.front();
  output_->describe(record_.effective);
  record_.effective.phantom = phantom_counters(launch_);
  if (record_.effective.phantom) explain_on_phantoms(record_);
}

int leave_record(const RankLaunch& launch, RankRecord& record, ProgressWriter& progress) {
  if (record.ended_unix_ns == 0) record.ended_unix_ns = unix_ns_now();
  const auto written =
      files::write_atomically(spool::rank_record(launch.attempt_dir, launch.rank), dump(to_json(record)));
  if (record.outcome != Outcome::kOk)
    std::fprintf(stderr, "sweep-agent command: %s\n", record.message.c_str());
  if (!written) std::fprintf(stderr, "sweep-agent command: %s\n", written.error().message.c_str());
  progress.phase(Phase::kDone);
  return exit_code_of(written);
}

// The agent reads the signal of this process, and the kernel's counters, to tell an OOM kill from another.
[[noreturn]] void end_as(int signal) {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::signal(signal, SIG_DFL);
  ::kill(::getpid(), signal);
  ::_exit(128 + signal);
}

}  // namespace

int run_command_rank(const RankLaunch& launch) {
  RankRecord record;
  record.attempt = spool::attempt_of(launch.attempt_dir);
  record.rank = launch.rank;
  CommandRank rank(launch, record);
  const auto end = rank.run();
  if (!end) {
    record.outcome = Outcome::kCrash;
    record.phase = Phase::kInit;
    record.message = end.error().message;
  } else if (end->own && end->end.signal && !end->stopped && !end->lingered &&
             record.outcome == Outcome::kCrash) {
    end_as(*end->end.signal);
  }
  const int left = leave_record(launch, record, rank.progress());
  if (left == 0 && !rank.knows_its_attempt()) return kNoAttempt;
  // The code of the process is that of the program, which evidence shows of a rank that failed.
  const bool failed = end && record.outcome != Outcome::kOk;
  return left == 0 && failed ? end->end.exit_code.value_or(0) : left;
}

}  // namespace sweep::command
