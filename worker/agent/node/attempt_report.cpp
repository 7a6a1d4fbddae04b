#include "worker/agent/node/attempt_report.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/files.h"
#include "base/time.h"
#include "schema/codec.h"
#include "schema/command_spec.h"
#include "schema/rank_launch.h"
#include "schema/spool.h"
#include "schema/xid.h"
#include "worker/agent/evidence/flight_trace.h"
#include "worker/agent/evidence/nccl_log.h"
#include "worker/agent/evidence/proc_facts.h"

namespace sweep::agent {
namespace {

constexpr std::size_t kMostNcclBytes = 8u << 20;
constexpr std::size_t kMostFlightBytes = 32u << 20;
// Limits for one rank, and for all of an attempt: evidence is read up to a megabyte.
constexpr std::size_t kMostStackBytes = 12u << 10, kAllStackBytes = 384u << 10;

// Reads what NCCL wrote beside a rank's log.
NcclLog nccl_log_of(const std::filesystem::path& dir, i64 rank) {
  std::error_code ec;
  const auto path = spool::nccl_log(dir, rank);
  if (!std::filesystem::exists(path, ec)) return {};
  const auto text = files::read_from(path, 0, kMostNcclBytes);
  return read_nccl_log(text ? *text : "");
}

// The content of a rank's flight recorder, once it was asked.
std::optional<std::vector<FlightGroup>> flight_of(const std::filesystem::path& dir, i64 rank) {
  const auto path = spool::flight_trace(dir, rank);
  std::error_code ec;
  if (!std::filesystem::exists(path, ec)) return std::nullopt;
  const auto bytes = files::read_from(path, 0, kMostFlightBytes);
  return groups_of(read_flight_trace(bytes ? *bytes : ""));
}

// The stacks of a command's rank. Empty: it could not say.
std::string stacks_of(const std::filesystem::path& dir, i64 rank, i64 ranks) {
  const std::size_t most = kAllStackBytes / static_cast<std::size_t>(std::max<i64>(ranks, 1));
  return files::read_from(spool::rank_stacks(dir, rank), 0, std::min(kMostStackBytes, most)).value_or("");
}

}  // namespace

AgentEvidence rank_evidence(const RankProcesses& ranks, const AttemptResources& resources,
                            const Watchdog& watchdog) {
  AgentEvidence out;
  i64 index = 0;
  for (const RankProcess& each : ranks.all()) {
    const Heartbeat seen = resources.files->heartbeat(index);
    RankPosition& rank = out.ranks.emplace_back();
    rank.rank = each.rank, rank.pid = each.outside_pid, rank.alive = !each.ended;
    rank.phase = to_string(seen.phase), rank.part = name_of(seen.part);
    rank.step = seen.step, rank.beats = seen.beats;
    rank.collectives_entered = seen.collective, rank.collectives_done = seen.collective_done;
    rank.last_collective = seen.entered.text();
    rank.seconds_without_progress = watchdog.idle_s(index);
    if (!seen.awaited.none()) rank.waits_for = seen.awaited.text();
    if (!each.ended) rank.where = where_it_is(each.pid);
    if (each.asked) {
      rank.flight = {true, flight_of(resources.files->dir(), each.rank)};
      rank.stacks = stacks_of(resources.files->dir(), each.rank, std::ssize(ranks.all()));
    }
    ++index;
  }
  out.oom_kills = resources.span->oom_kills();
  return out;
}

bool has_failed(const RankProcess& each, const AttemptFiles& files) {
  if (!each.ended) return false;
  if (!WIFEXITED(each.status) || WEXITSTATUS(each.status) != 0) return true;
  const auto record = files.record(each.rank);
  return !record || !*record || (*record)->outcome != Outcome::kOk;
}

bool had_no_room(const RankProcess& each, const AttemptFiles& files) {
  if (!each.ended || !WIFEXITED(each.status) || WEXITSTATUS(each.status) != kNoRoom) return false;
  const auto record = files.record(each.rank);
  return record && !*record;  // a command's own exit code may be the same
}

void AttemptReport::set_cause(EndCause cause, AgentEvidence evidence) {
  if (cause_) return;
  cause_ = cause;
  evidence_ = std::move(evidence);
  // Whether a failed start is final is known later; the AttemptEnd says it then.
  if (!part_.whole && cause != EndCause::kStartFailed) sink_.send(PartTrouble{part_.attempt.id, cause});
}

void AttemptReport::rank_failed(AgentEvidence evidence) {
  const EndCause cause = evidence.why.empty() ? EndCause::kRankFailed : EndCause::kAgentStopping;
  set_cause(cause, std::move(evidence));
}

void AttemptReport::intend(EndCause cause, std::string why, std::optional<i64> rank) {
  intended_ = {cause, std::move(why), rank};
}

void AttemptReport::settle(AgentEvidence evidence) {
  evidence.why = intended_.why, evidence.rank = intended_.rank;
  set_cause(intended_.cause, std::move(evidence));
}

void AttemptReport::start_again() {
  cause_.reset();
  start_error_.clear();
}

void AttemptReport::send_records(const RankProcesses& ranks, const AttemptFiles& files) {
  for (const RankProcess& each : ranks.all()) {
    auto record = files.record(each.rank);
    if (!record) {
      spdlog::warn("{}", record.error().message);
      evidence_.unreadable_records.push_back(record.error().message);
      continue;
    }
    NcclLog log = nccl_log_of(files.dir(), each.rank);
    if (*record) {
      if (!is_empty(log)) (*record)->effective.nccl = std::move(log);
      sink_.send(**record);
    } else if (!is_empty(log)) {
      log.rank = each.rank;
      evidence_.nccl_logs.push_back(std::move(log));
    }
  }
}

void AttemptReport::send_exits(const RankProcesses& ranks, const AttemptResources& resources) {
  const auto command = command_from(part_.attempt.trial.program);
  const bool one_log = part_.attempt.runs_command() && command && command->per_node;
  for (const RankProcess& each : ranks.all()) {
    if (each.pid == 0) continue;
    RankExit out;
    out.attempt = part_.attempt.id;
    out.rank = each.rank;
    out.pid = each.outside_pid;
    if (each.ended && WIFEXITED(each.status)) out.exit_code = WEXITSTATUS(each.status);
    if (each.ended && WIFSIGNALED(each.status)) out.signal = WTERMSIG(each.status);
    out.killed_by_agent = each.killed_by_agent;
    out.oom_killed = each.oom_killed;
    out.ended_unix_ns = each.ended ? each.ended_unix_ns : unix_ns_now();
    // The output of a launcher's ranks is in the log of the rank that started it.
    const RankProcess& writer = one_log ? ranks.all().front() : each;
    if (!each.ended || has_failed(each, *resources.files)) out.log_tail = writer.log->tail();
    sink_.send(std::move(out));
  }
}

// Errors of the GPUs that the ranks of the attempt use. A rehearsal's ranks count the GPUs of each node of
// the trial from 0.
std::vector<GpuError> AttemptReport::gpu_errors(const RankProcesses& ranks,
                                                AttemptResources& resources) const {
  const Attempt& attempt = part_.attempt;
  std::vector<GpuError> out = resources.span ? resources.span->gpu_errors() : std::vector<GpuError>{};
  for (GpuError& error : out) {
    std::optional<i64> found;
    for (std::size_t i = 0; i < ranks.all().size(); ++i) {
      const i64 rank = ranks.all()[i].rank;
      const i64 gpu = attempt.is_rehearsal() ? rank % attempt.trial.gpus_per_node : static_cast<i64>(i);
      if (gpu == error.rank && !found) found = rank;
    }
    error.rank = found;
  }
  return out;
}

void AttemptReport::send(const RankProcesses& ranks, AttemptResources& resources) {
  for (const RankProcess& each : ranks.all())
    if (each.log) each.log->compact();
  if (resources.files) send_records(ranks, *resources.files);
  send_exits(ranks, resources);
  AttemptEnd out;
  out.attempt = part_.attempt.id;
  out.cause = cause_.value_or(EndCause::kDone);
  if (!start_error_.empty()) evidence_ = {.why = start_error_};
  out.evidence = std::move(evidence_);
  out.gpu_errors = gpu_errors(ranks, resources);
  for (const GpuError& error : out.gpu_errors)
    if (cleanup_failure_.empty() && is_hardware_fault(error.xid))
      cleanup_failure_ =
          fmt::format("GPU {} reported Xid {}: {}", error.gpu, error.xid, meaning_of_xid(error.xid));
  out.clean = cleanup_failure_.empty();
  out.cleanup_failure = cleanup_failure_;
  out.started_unix_ns = started_unix_ns_;
  out.ended_unix_ns = unix_ns_now();
  if (resources.span) resources.span->report(out);
  resources.door.reset();
  if (resources.files) resources.files->remove_rendezvous();
  sink_.send(std::move(out));
}

}  // namespace sweep::agent
