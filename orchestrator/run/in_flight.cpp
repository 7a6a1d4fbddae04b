#include "orchestrator/run/in_flight.h"

#include <fmt/format.h>

#include <algorithm>

#include "orchestrator/metrics/derive.h"
#include "orchestrator/run/demand.h"
#include "schema/codec.h"
#include "schema/frame.h"

namespace sweep::run {
namespace {

Metrics memory_only(const Metrics& all) {
  Metrics kept;
  kept.peak_allocated_bytes = all.peak_allocated_bytes;
  kept.peak_reserved_bytes = all.peak_reserved_bytes;
  kept.peak_rank = all.peak_rank;
  kept.alloc_retries = all.alloc_retries;
  kept.ooms = all.ooms;
  kept.host_peak_rss_bytes = all.host_peak_rss_bytes;
  kept.formula_version = all.formula_version;
  return kept;
}

}  // namespace

std::string slow_in_screen(const NodeRecord& node) {
  return node.facts.screen ? node.facts.screen->slow : std::string();
}

namespace {

// Steps that were planned and not run because those that were run show the trial above its bound.
std::optional<i64> steps_saved(const Attempt& attempt, const Metrics& m) {
  if (!attempt.stop_above_ms || !m.step_ms_ci_low || *m.step_ms_ci_low <= *attempt.stop_above_ms) return {};
  const i64 run = m.timed_steps.value_or(0) + m.skipped_steps.value_or(0);
  const i64 saved = attempt.measure.steps * attempt.measure.repeats - run;
  return saved > 0 ? std::optional(saved) : std::nullopt;
}

// Why an attempt has no result although every rank reported ok; nullopt: it has one.
std::optional<std::string> disbelieved(const Attempt& attempt, const std::vector<RankRecord>& records,
                                       const Metrics& derived) {
  const bool phantoms =
      std::ranges::any_of(records, [](const RankRecord& each) { return each.effective.phantom.has_value(); });
  if (attempt.is_rehearsal() && !phantoms)
    return attempt.trial.workload == Workload::kCommand
               ? "the program used no phantom GPU: it trains on the CPU, or LD_PRELOAD did not reach its "
                 "processes (it is "
                 "set in their environment)"
               : "the rehearsal's ranks saw no phantom GPU: LD_PRELOAD did not reach them";
  if (!attempt.is_rehearsal() && phantoms)
    return "the ranks ran on phantom GPUs, which measure nothing; `sweep run --rehearse` keeps such runs "
           "apart";
  if (phantoms) return std::nullopt;  // neither gradients nor rates are measured
  if (auto skipped = metrics::never_updated(derived)) return skipped;
  return metrics::beyond_peak(attempt.trial, derived);
}

}  // namespace

Result result_of(const InFlightAttempt& ended) {
  Result result = ingest::judge(ended.attempt, ended.reports);
  std::vector<RankRecord> records;
  for (const auto& [rank, record] : ended.reports.records) records.push_back(record);
  const AttemptEnd* end = ended.reports.end ? &*ended.reports.end : nullptr;
  const auto asked = result.metrics.oom_asked_bytes;
  const auto part = result.metrics.oom_part;
  const Metrics derived = metrics::derive(ended.attempt.trial, records, end, ended.attempt.usd_per_node_hour,
                                          ended.attempt.processes());
  const auto why =
      result.outcome == Outcome::kOk ? disbelieved(ended.attempt, records, derived) : std::nullopt;
  if (why) {
    result.outcome = Outcome::kInvalid;
    result.phase = Phase::kStep;
    result.reason = *why;
  }
  result.metrics = result.outcome == Outcome::kOk ? derived : memory_only(derived);
  if (result.outcome == Outcome::kOk) result.metrics.steps_saved = steps_saved(ended.attempt, derived);
  result.metrics.oom_asked_bytes = asked;
  result.metrics.oom_part = part;
  result.metrics.predicted_bytes = ended.entry.predicted.bytes;
  result.metrics.predicted_ms = ended.entry.predicted.step_ms;
  return result;
}

void InFlightAttempts::add(Attempt attempt, PlanEntry entry, ingest::AttemptReports known, bool started) {
  const i64 id = attempt.id;
  const auto [at, added] = attempts_.try_emplace(
      id, InFlightAttempt{std::move(attempt), std::move(entry), std::move(known), started});
  if (added) count(at->second, 1);
}

std::vector<Attempt> InFlightAttempts::attempts() const {
  std::vector<Attempt> out;
  for (const auto& [id, each] : attempts_) out.push_back(each.attempt);
  return out;
}

double InFlightAttempts::longest_s() const {
  double longest = 0;
  for (const auto& [id, each] : attempts_) longest = std::max(longest, each.attempt.deadlines.total_s);
  return longest;
}

InFlightAttempt* InFlightAttempts::find(i64 attempt) {
  const auto found = attempts_.find(attempt);
  return found == attempts_.end() ? nullptr : &found->second;
}

void InFlightAttempts::count(const InFlightAttempt& each, i64 sign) {
  nodes_ += sign * each.attempt.trial.nodes;
  seconds_ += static_cast<double>(sign) * predicted_node_seconds(each.entry);
  // Rounding leaves a rest.
  if (attempts_.empty()) seconds_ = 0;
}

InFlightAttempts::IngestedChunk InFlightAttempts::ingest_chunk(const std::string& allocation,
                                                               std::uint64_t offset, std::string_view bytes) {
  IngestedChunk out;
  ingest::Batch read = ingest::read(bytes);
  out.batch.allocation = allocation;
  out.batch.new_offset = offset + read.consumed;
  for (auto& damage : read.damage) out.notes.push_back({"damaged outbox line " + damage, {}});
  for (auto& message : read.messages) apply(message, out);
  for (const FinishedAttempt& each : out.finished) out.batch.results.push_back(each.result);
  return out;
}

// Its content is moved into the batch.
void InFlightAttempts::apply(ingest::Message& message, IngestedChunk& out) {
  if (auto* node = std::get_if<NodeRecord>(&message)) out.batch.nodes.push_back(std::move(*node));
  if (const auto* started = std::get_if<AttemptStarted>(&message)) {
    InFlightAttempt* of = find(started->attempt);
    if (of == nullptr) return;
    of->started = true;
    out.batch.started.emplace_back(started->attempt, started->unix_ns);
  }
  if (auto* record = std::get_if<RankRecord>(&message)) apply_record(*record, out);
  if (auto* exit = std::get_if<RankExit>(&message)) {
    InFlightAttempt* of = find(exit->attempt);
    if (of == nullptr) return;
    of->reports.exits[exit->rank] = *exit;
    out.batch.rank_exits.push_back(std::move(*exit));
  }
  if (const auto* end = std::get_if<AttemptEnd>(&message)) apply_end(*end, out);
  if (auto* node = std::get_if<NodeOut>(&message)) out.nodes_out.push_back(std::move(*node));
}

void InFlightAttempts::apply_record(RankRecord& record, IngestedChunk& out) {
  InFlightAttempt* of = find(record.attempt);
  if (of == nullptr || !of->attempt.starts(record.rank)) return;
  of->reports.records[record.rank] = record;
  if (!told_of_sockets_ && record.effective.nccl && record.effective.nccl->sockets) {
    told_of_sockets_ = true;
    out.notes.push_back(
        {fmt::format("attempt {}: NCCL sends between nodes over TCP sockets, not over InfiniBand or RoCE; "
                     "rank_{:05}.nccl beside its log says what it found (NCCL_IB_HCA, NCCL_SOCKET_IFNAME)",
                     record.attempt, record.rank),
         record.attempt});
  }
  out.batch.rank_records.push_back(std::move(record));
}

void InFlightAttempts::apply_end(const AttemptEnd& end, IngestedChunk& out) {
  const auto found = attempts_.find(end.attempt);
  if (found == attempts_.end()) return;
  found->second.reports.end = end;
  out.batch.ends.push_back(end);
  if (!end.clean)
    out.notes.push_back(
        {fmt::format("attempt {} left processes or GPU memory behind: {}", end.attempt, end.cleanup_failure),
         end.attempt});
  FinishedAttempt finished{std::move(found->second), {}};
  attempts_.erase(found);
  count(finished.in_flight, -1);
  finished.result = result_of(finished.in_flight);
  out.finished.push_back(std::move(finished));
}

std::vector<InFlightAttempt> InFlightAttempts::abandon() {
  std::vector<InFlightAttempt> left;
  for (auto& [id, each] : attempts_) left.push_back(std::move(each));
  attempts_.clear();
  nodes_ = 0, seconds_ = 0;
  return left;
}

}  // namespace sweep::run
