#include "orchestrator/run/in_flight.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

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
  const auto facts = parse_json(node.facts);
  const bool screened =
      facts && facts->is_object() && facts->contains("screen") && (*facts)["screen"].is_object();
  return screened ? text_of((*facts)["screen"], "slow") : std::string();
}

// Why what every rank calls ok is no result; absent: it is one.
std::optional<std::string> not_believed(const Attempt& attempt, const std::vector<RankRecord>& records,
                                        const Metrics& derived) {
  const bool phantoms = std::ranges::any_of(records, &RankRecord::phantom);
  if (attempt.is_rehearsal() && !phantoms)
    return "the rehearsal's ranks saw no phantom GPU: LD_PRELOAD did not reach them";
  if (!attempt.is_rehearsal() && phantoms)
    return "the ranks ran on phantom GPUs, which measure nothing; `sweep run --rehearse` keeps such runs "
           "apart";
  // The rates of phantoms are no measurement, so no peak bounds them.
  return phantoms ? std::nullopt : metrics::beyond_peak(attempt.trial, derived);
}

Result verdict(const InFlightAttempt& flight) {
  Result result = ingest::judge(flight.attempt, flight.testimony);
  std::vector<RankRecord> records;
  for (const auto& [rank, record] : flight.testimony.records) records.push_back(record);
  const AttemptEnd* end = flight.testimony.end ? &*flight.testimony.end : nullptr;
  const auto asked = result.metrics.oom_asked_bytes;
  const auto part = result.metrics.oom_part;
  const Metrics derived = metrics::derive(flight.attempt.trial, records, end,
                                          flight.attempt.usd_per_node_hour, flight.attempt.processes());
  const auto impossible =
      result.outcome == Outcome::kOk ? not_believed(flight.attempt, records, derived) : std::nullopt;
  if (impossible)
    result.outcome = Outcome::kInvalid, result.phase = Phase::kStep, result.reason = *impossible;
  result.metrics = result.outcome == Outcome::kOk ? derived : memory_only(derived);
  result.metrics.oom_asked_bytes = asked;
  result.metrics.oom_part = part;
  result.metrics.predicted_bytes = flight.entry.predicted.bytes;
  result.metrics.predicted_ms = flight.entry.predicted.step_ms;
  return result;
}

void InFlightAttempts::add(Attempt attempt, PlanEntry entry, ingest::AttemptReports known, bool started) {
  const i64 id = attempt.id;
  const auto [at, added] = flights_.try_emplace(
      id, InFlightAttempt{std::move(attempt), std::move(entry), std::move(known), started});
  if (added) count(at->second, 1);
}

std::vector<Attempt> InFlightAttempts::attempts() const {
  std::vector<Attempt> out;
  for (const auto& [id, flight] : flights_) out.push_back(flight.attempt);
  return out;
}

void InFlightAttempts::count(const InFlightAttempt& flight, i64 sign) {
  const auto& nodes = flight.attempt.trial.nodes;
  nodes_ += sign * nodes;
  seconds_ += static_cast<double>(sign) * foretold_seconds(flight.entry);
  if (flights_.empty()) seconds_ = 0;  // what rounding left
}

InFlightAttempts::IngestedChunk InFlightAttempts::ingest_chunk(const std::string& allocation,
                                                               std::uint64_t offset, std::string_view bytes) {
  IngestedChunk out;
  ingest::Batch read = ingest::read(bytes);
  out.batch.allocation = allocation;
  out.batch.new_offset = offset + read.consumed;
  for (auto& damage : read.damage) out.notes.push_back("damaged outbox line " + damage);
  for (auto& message : read.messages) apply(message, out);
  for (const FinishedAttempt& landing : out.landed) out.batch.results.push_back(landing.result);
  return out;
}

// What it holds is taken from the message.
void InFlightAttempts::apply(ingest::Message& message, IngestedChunk& out) {
  if (auto* node = std::get_if<NodeRecord>(&message)) out.batch.nodes.push_back(std::move(*node));
  if (const auto* started = std::get_if<ingest::Started>(&message)) {
    const auto it = flights_.find(started->attempt);
    if (it == flights_.end()) return;
    it->second.started = true;
    out.batch.started.emplace_back(started->attempt, started->unix_ns);
  }
  if (auto* record = std::get_if<RankRecord>(&message)) {
    const auto it = flights_.find(record->attempt);
    if (it == flights_.end() || !it->second.attempt.starts(record->rank)) return;
    it->second.testimony.records[record->rank] = *record;
    if (!said_sockets_ && record->transport == Transport::kSockets) {
      said_sockets_ = true;
      out.notes.push_back(
          fmt::format("attempt {}: NCCL sends between nodes over TCP sockets, not over InfiniBand or RoCE; "
                      "rank_{:05}.nccl beside its log says what it found (NCCL_IB_HCA, NCCL_SOCKET_IFNAME)",
                      record->attempt, record->rank));
    }
    out.batch.rank_records.push_back(std::move(*record));
  }
  if (auto* exit = std::get_if<RankExit>(&message)) {
    const auto it = flights_.find(exit->attempt);
    if (it == flights_.end()) return;
    it->second.testimony.exits[exit->rank] = *exit;
    out.batch.rank_exits.push_back(std::move(*exit));
  }
  if (const auto* end = std::get_if<AttemptEnd>(&message)) {
    const auto it = flights_.find(end->attempt);
    if (it == flights_.end()) return;
    it->second.testimony.end = *end;
    out.batch.ends.push_back(*end);
    if (!end->clean) {
      out.unclean = true;
      out.notes.push_back(
          fmt::format("attempt {} was not left clean: {}", end->attempt, end->cleanup_failure));
    }
    FinishedAttempt landing{std::move(it->second), {}};
    flights_.erase(it);
    count(landing.flight, -1);
    landing.result = verdict(landing.flight);
    out.landed.push_back(std::move(landing));
  }
}

std::vector<InFlightAttempt> InFlightAttempts::abandon() {
  std::vector<InFlightAttempt> left;
  for (auto& [id, flight] : flights_) left.push_back(std::move(flight));
  flights_.clear();
  nodes_ = 0, seconds_ = 0;
  return left;
}

}  // namespace sweep::run
