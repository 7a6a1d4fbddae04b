#include "worker/command/command_rank.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"
#include "base/time.h"
#include "runtime/progress_writer.h"
#include "runtime/rank_place.h"
#include "runtime/rank_process.h"
#include "schema/codec.h"
#include "schema/spool.h"
#include "worker/command/early_end.h"
#include "worker/command/phantom_place.h"
#include "worker/command/trainer_stacks.h"
#include "worker/command/verdict.h"

namespace sweep::command {
namespace {

namespace fs = std::filesystem;

constexpr int kLookMs = 100;        // how often the report and the log are looked at
constexpr double kLeaveWithin = 5;  // seconds a trainer has to leave after it reported an error
constexpr double kLastLines = 0.5;  // seconds in which the other ranks report the last step
constexpr std::size_t kReadAtOnce = 1u << 20;
constexpr std::uint64_t kFreeEvery = 16u << 20;  // bytes read until their room on the disk is given back

// The results file of this rank, read as it grows.
class ResultsFile {
 public:
  explicit ResultsFile(fs::path path) : path_(std::move(path)) {}

  void read_into(TrainerReport& report) {
    while (true) {
      const auto bytes = files::read_from(path_, offset_, kReadAtOnce);
      if (!bytes || bytes->empty()) return;
      report.feed(*bytes);
      offset_ += bytes->size();
      if (offset_ - freed_ >= kFreeEvery) free_what_was_read();
    }
  }

 private:
  // A hole keeps the offsets of writers and of this reader; file systems without holes keep the bytes.
  void free_what_was_read() {
    const Descriptor file(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.get() >= 0)
      ::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(offset_));
    freed_ = offset_;
  }

  fs::path path_;
  std::uint64_t offset_ = 0, freed_ = 0;
};

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
        results_(results_file(launch, launch.rank)),
        stacks_(launch) {}

  Expected<ProgramEnd> run();
  ProgressWriter& progress() { return progress_; }

 private:
  Expected<Meeting> meet();
  bool starts_the_program() const { return !command_.per_node || launch_.local_rank == 0; }
  i64 node() const { return launch_.rank / std::max<i64>(1, attempt_.trial.gpus_per_node); }
  ProgramEnd follow();
  std::optional<TrainerProcess::End> program_end(int wait_ms);
  void look();
  void show_progress();
  bool log_has_grown();
  bool has_all_steps() const {
    return report_.last_step() > attempt_.measure.warmup_steps + attempt_.measure.steps;
  }
  bool read_log();
  void describe();

  RankLaunch launch_;
  RankRecord& record_;
  Attempt attempt_;
  CommandSpec command_;
  ProgressWriter progress_;
  ResultsFile results_;
  TrainerReport report_;
  std::optional<ReservedPort> port_;
  std::optional<TrainerProcess> program_;
  TrainerStacks stacks_;
  std::optional<EarlyEnd> early_end_;
  // What the heartbeat page has shown so far, and when the trainer's first error was seen.
  struct {
    i64 steps = 0, lines = 0, log_bytes = 0;
    std::optional<i64> error_unix_ns;
  } shown_;
};

Expected<Meeting> CommandRank::meet() {
  if (launch_.rank != 0)
    return await_meeting(launch_,
                         std::chrono::milliseconds(static_cast<i64>(attempt_.deadlines.startup_s * 1000)));
  auto port = ReservedPort::reserve();
  if (!port) return tl::unexpected(port.error());
  port_.emplace(std::move(*port));
  return announce_meeting(launch_, *port_);
}

Expected<ProgramEnd> CommandRank::run() {
  progress_.phase(Phase::kInit);
  auto attempt = read_attempt(launch_);
  if (!attempt) return tl::unexpected(attempt.error());
  attempt_ = std::move(*attempt);
  launch_.local_rank = local_rank_of(attempt_, launch_);
  record_.attempt = attempt_.id;
  early_end_.emplace(attempt_, launch_);
  auto command = command_from(attempt_.trial.program);
  if (!command) return tl::unexpected(command.error());
  command_ = std::move(*command);
  const auto meeting = meet();
  if (!meeting) return tl::unexpected(meeting.error());
  if (starts_the_program()) {
    const auto prepared = prepare(command_, attempt_, launch_, *meeting);
    if (!prepared) return tl::unexpected(prepared.error());
    auto started = TrainerProcess::start(*prepared);
    if (!started) return tl::unexpected(started.error());
    program_.emplace(std::move(*started));
  }
  const ProgramEnd end = follow();
  conclude(record_, attempt_, report_, end);
  if (shown_.error_unix_ns)
    record_.ended_unix_ns =
        failed_at(*report_.error(), *shown_.error_unix_ns - age_ns(), *shown_.error_unix_ns);
  describe();
  return end;
}

// None: it still runs.
std::optional<TrainerProcess::End> CommandRank::program_end(int wait_ms) {
  if (program_) return program_->wait_ms(wait_ms);
  std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
  const auto said = files::read_from(node_end_file(launch_, node()), 0, 64);
  if (!said || said->empty()) return std::nullopt;
  TrainerProcess::End end;
  const int code = std::atoi(said->c_str());
  (code < 0 ? end.signal : end.exit_code) = std::abs(code);
  return end;
}

ProgramEnd CommandRank::follow() {
  ProgramEnd out;
  out.own = program_.has_value();
  out.launches_others = command_.per_node;
  std::optional<double> leaves_by;
  while (true) {
    const auto ended = program_end(kLookMs);
    look();
    stacks_.answer_requests();
    if (ended) {
      out.end = *ended;
      if (!leaves_by && ended->exit_code != 0) out.stopped = early_end_->is_due(report_.steps(), true);
      break;
    }
    if (!leaves_by && early_end_->is_due(report_.steps())) {
      out.stopped = true;
      leaves_by = steady_s() + early_end_->settle_s();
    }
    const bool enough = command_.stop_after_steps && has_all_steps();
    if (!leaves_by && (report_.error() || enough))
      leaves_by = steady_s() + (enough ? kLastLines : kLeaveWithin);
    if (!leaves_by || steady_s() < *leaves_by) continue;
    if (!out.stopped) (enough ? out.stopped : out.lingered) = true;
    break;
  }
  if (program_ && !out.end.exit_code && !out.end.signal) {
    program_->send(SIGKILL);
    out.end = program_->wait_ms(-1).value_or(TrainerProcess::End{});
    look();
  }
  if (program_ && command_.per_node) {
    const int code = out.stopped ? 0 : out.end.exit_code.value_or(-out.end.signal.value_or(0));
    (void)files::write_atomically(node_end_file(launch_, node()), std::to_string(code) + "\n");
  }
  return out;
}

void CommandRank::look() {
  results_.read_into(report_);
  if (report_.error() && !shown_.error_unix_ns) shown_.error_unix_ns = unix_ns_now();
  show_progress();
}

// Steps and lines of the report are progress. Until its first step the log's growth is too: downloads,
// compilers and data sets take their time there. A trainer that reports nothing is judged by its log alone.
void CommandRank::show_progress() {
  const Phase phase = phase_of(report_, attempt_.measure);
  if (phase != progress_.current()) progress_.phase(phase);
  if (report_.last_step() > attempt_.measure.warmup_steps && !record_.startup_ns)
    record_.startup_ns = age_ns();
  for (; shown_.steps < static_cast<i64>(report_.steps().size()); ++shown_.steps) progress_.begin_step();
  const bool grown = log_has_grown();
  const bool spoke = report_.lines() != std::exchange(shown_.lines, report_.lines());
  if (spoke || (grown && report_.last_step() == 0)) progress_.part(Part::kNone);
}

bool CommandRank::log_has_grown() {
  struct stat log {};
  if (::fstat(STDOUT_FILENO, &log) != 0) return false;
  return log.st_size != std::exchange(shown_.log_bytes, static_cast<i64>(log.st_size));
}

// The log is read once, at the end: of a rank that reported no step itself.
bool CommandRank::read_log() {
  if (command_.log_patterns.empty() || report_.last_step() > 0) return false;
  const auto patterns = LogPatterns::compile(command_.log_patterns);
  const auto log = files::read_from(spool::rank_log(launch_.attempt_dir, launch_.rank), 0,
                                    static_cast<std::size_t>(attempt_.log_limit_bytes));
  if (!patterns || !log) return false;
  const auto found = patterns->read(*log);
  add_from_log(record_, attempt_, found);
  return !found.steps.empty();
}

void CommandRank::describe() {
  const bool from_log = read_log();
  nlohmann::json effective{{"backend", nullptr},
                           {"command", command_.argv.front()},
                           {"report", from_log              ? "from_log"
                                      : report_.has_begun() ? "lines"
                                                            : "none"}};
  if (const auto counted = phantom_counters(launch_)) {
    record_.phantom = true;
    effective["phantom"] = *counted;
    explain_on_phantoms(record_, *counted);
  }
  if (report_.damaged() > 0) effective["damaged_lines"] = report_.damaged();
  record_.effective = dump(effective);
}

int leave_record(const RankLaunch& launch, RankRecord& record, ProgressWriter& progress) {
  if (record.ended_unix_ns == 0) record.ended_unix_ns = unix_ns_now();
  const auto written =
      files::write_atomically(spool::rank_record(launch.attempt_dir, launch.rank), dump(to_json(record)));
  if (record.outcome != Outcome::kOk)
    std::fprintf(stderr, "sweep-agent command: %s\n", record.message.c_str());
  if (!written) std::fprintf(stderr, "sweep-agent command: %s\n", written.error().message.c_str());
  progress.phase(Phase::kDone);
  return written ? 0 : 1;
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
  return leave_record(launch, record, rank.progress());
}

}  // namespace sweep::command
