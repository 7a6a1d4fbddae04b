// What an AttemptRun reports: evidence of a hang, the ranks' records, their exits, and the AttemptEnd.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>

#include "base/files.h"
#include "base/time.h"
#include "schema/codec.h"
#include "schema/spool.h"
#include "schema/xid.h"
#include "worker/agent/evidence/nccl_log.h"
#include "worker/agent/evidence/proc_facts.h"
#include "worker/agent/node/attempt_run.h"

namespace sweep::agent {
namespace {

constexpr std::size_t kMostNcclWords = 8u << 20;

// What NCCL wrote beside a rank's log.
NcclLog nccl_words(const std::filesystem::path& dir, i64 rank) {
  std::error_code ec;
  const auto path = spool::nccl_log(dir, rank);
  if (!std::filesystem::exists(path, ec)) return {};
  const auto text = files::read_from(path, 0, kMostNcclWords);
  return read_nccl_log(text ? *text : "");
}

// It goes into what the rank says it used.
void add_nccl_words(const std::filesystem::path& dir, RankRecord& record) {
  const NcclLog log = nccl_words(dir, record.rank);
  auto used = parse_json(record.effective.empty() ? "{}" : record.effective);
  if (!used || !used->is_object() || log.empty()) return;
  (*used)["nccl"] = to_json(log);
  record.effective = dump(*used);
  record.transport = log.transport();
}

}  // namespace

nlohmann::json AttemptRun::collect_evidence() const {
  nlohmann::json out = {{"ranks", nlohmann::json::array()}};
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Heartbeat seen = files_->heartbeat(static_cast<i64>(i));
    nlohmann::json rank = {{"rank", world_rank(i)},
                           {"pid", ranks_[i].outside_pid},
                           {"alive", !ranks_[i].ended},
                           {"phase", to_string(seen.phase)},
                           {"part", name_of(seen.part)},
                           {"step", seen.step},
                           {"beats", seen.beats},
                           {"collectives_entered", seen.collective},
                           {"collectives_done", seen.collective_done},
                           {"last_collective", seen.entered.text()},
                           {"seconds_without_progress", watchdog_.idle_s(static_cast<i64>(i))}};
    if (!seen.awaited.none()) rank["waits_for"] = seen.awaited.text();
    if (!ranks_[i].ended) rank["where"] = where_it_is(ranks_[i].pid);
    add_flight(i, rank);
    out["ranks"].push_back(std::move(rank));
  }
  if (const i64 kills = span_->oom_kills(); kills > 0) out["oom_kills"] = kills;
  return out;
}

void AttemptRun::send_records() {
  for (std::size_t i = 0; files_ && i < ranks_.size(); ++i) {
    auto record = files_->record(world_rank(i));
    if (!record) {
      spdlog::warn("{}", record.error().message);
      if (!evidence_.is_object()) evidence_ = nlohmann::json::object();
      evidence_["unreadable_records"].push_back(record.error().message);
    } else if (*record) {
      add_nccl_words(files_->dir(), **record);
      context_.host.send(spool::kRankRecord, to_json(**record));
    } else if (const NcclLog log = nccl_words(files_->dir(), world_rank(i)); !log.empty()) {
      if (!evidence_.is_object()) evidence_ = nlohmann::json::object();
      nlohmann::json words = to_json(log);
      words["rank"] = world_rank(i);
      evidence_["nccl_logs"].push_back(std::move(words));
    }
  }
}

void AttemptRun::send_exits() {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Rank& rank = ranks_[i];
    if (rank.pid == 0) continue;
    RankExit out;
    out.attempt = attempt_.id;
    out.rank = world_rank(i);
    out.pid = rank.outside_pid;
    if (rank.ended && WIFEXITED(rank.status)) out.exit_code = WEXITSTATUS(rank.status);
    if (rank.ended && WIFSIGNALED(rank.status)) out.signal = WTERMSIG(rank.status);
    out.killed_by_agent = rank.killed_by_agent;
    out.oom_killed = rank.oom_killed;
    out.ended_unix_ns = rank.ended ? rank.ended_unix_ns : unix_ns_now();
    if (!rank.ended || failed(rank, static_cast<i64>(i))) out.log_tail = rank.log->tail();
    context_.host.send(spool::kRankExit, to_json(out));
  }
}

// By the ranks of the attempt. A rehearsal's ranks count the GPUs of each node of the trial from 0.
std::vector<GpuError> AttemptRun::gpu_errors() {
  std::vector<GpuError> out = span_ ? span_->gpu_errors() : std::vector<GpuError>{};
  for (GpuError& error : out) {
    std::optional<i64> found;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const i64 gpu =
          attempt_.is_rehearsal() ? world_rank(i) % attempt_.trial.gpus_per_node : static_cast<i64>(i);
      if (gpu == error.rank && !found) found = world_rank(i);
    }
    error.rank = found;
  }
  return out;
}

void AttemptRun::finish() {
  stage_ = Stage::kFinished;
  for (const Rank& rank : ranks_)
    if (rank.log) rank.log->compact();
  send_records();
  send_exits();
  AttemptEnd out;
  out.attempt = attempt_.id;
  out.cause = cause_.value_or(EndCause::kDone);
  if (!start_error_.empty()) evidence_ = {{"why", start_error_}};
  if (!evidence_.is_null()) out.evidence = dump(evidence_);
  out.gpu_errors = gpu_errors();
  for (const GpuError& error : out.gpu_errors)
    if (cleanup_failure_.empty() && is_hardware_fault(error.xid))
      cleanup_failure_ =
          fmt::format("GPU {} reported Xid {}: {}", error.gpu, error.xid, meaning_of_xid(error.xid));
  out.clean = cleanup_failure_.empty();
  out.cleanup_failure = cleanup_failure_;
  out.started_unix_ns = started_unix_ns_;
  out.ended_unix_ns = unix_ns_now();
  if (span_) span_->report(out);
  door_.reset();
  if (files_) files_->remove_rendezvous();
  context_.host.send(spool::kAttemptEnd, to_json(out));
  timer_.cancel();
  finished_(*this);
}

}  // namespace sweep::agent
