#include "orchestrator/run/flights.h"

#include <fmt/format.h>

#include "orchestrator/metrics/derive.h"

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

Result verdict(const Flight& flight) {
  Result result = ingest::judge(flight.attempt, flight.testimony);
  std::vector<RankRecord> records;
  for (const auto& [rank, record] : flight.testimony.records) records.push_back(record);
  const AttemptEnd* end = flight.testimony.end ? &*flight.testimony.end : nullptr;
  const auto asked = result.metrics.oom_asked_bytes;
  const Metrics derived =
      metrics::derive(flight.attempt.trial, records, end, flight.attempt.usd_per_node_hour);
  result.metrics = result.outcome == Outcome::kOk ? derived : memory_only(derived);
  result.metrics.oom_asked_bytes = asked;
  result.metrics.predicted_bytes = flight.entry.predicted.bytes;
  result.metrics.predicted_ms = flight.entry.predicted.step_ms;
  return result;
}

void Flights::add(Attempt attempt, PlanEntry entry, ingest::Testimony known, bool started) {
  const i64 id = attempt.id;
  const auto [at, added] =
      flights_.try_emplace(id, Flight{std::move(attempt), std::move(entry), std::move(known), started});
  if (added) count(at->second, 1);
}

std::vector<Attempt> Flights::attempts() const {
  std::vector<Attempt> out;
  for (const auto& [id, flight] : flights_) out.push_back(flight.attempt);
  return out;
}

void Flights::count(const Flight& flight, i64 sign) {
  const auto& nodes = flight.attempt.trial.nodes;
  nodes_ += sign * nodes;
  seconds_ += static_cast<double>(sign * nodes) * flight.entry.predicted.seconds.value_or(0);
  if (flights_.empty()) seconds_ = 0;  // what rounding left
}

Flights::Absorbed Flights::absorb(const std::string& allocation, std::uint64_t offset,
                                  std::string_view bytes) {
  Absorbed out;
  ingest::Batch read = ingest::read(bytes);
  out.batch.allocation = allocation;
  out.batch.new_offset = offset + read.consumed;
  for (auto& damage : read.damage) out.notes.push_back("damaged outbox line " + damage);
  for (const auto& message : read.messages) apply(message, out);
  for (const Landing& landing : out.landed) out.batch.results.push_back(landing.result);
  return out;
}

void Flights::apply(const ingest::Message& message, Absorbed& out) {
  if (const auto* node = std::get_if<NodeRecord>(&message)) out.batch.nodes.push_back(*node);
  if (const auto* started = std::get_if<ingest::Started>(&message)) {
    const auto it = flights_.find(started->attempt);
    if (it == flights_.end()) return;
    it->second.started = true;
    out.batch.started.emplace_back(started->attempt, started->unix_ns);
  }
  if (const auto* record = std::get_if<RankRecord>(&message)) {
    const auto it = flights_.find(record->attempt);
    if (it == flights_.end() || record->rank < 0 || record->rank >= it->second.attempt.trial.world()) return;
    it->second.testimony.records[record->rank] = *record;
    out.batch.rank_records.push_back(*record);
  }
  if (const auto* exit = std::get_if<RankExit>(&message)) {
    const auto it = flights_.find(exit->attempt);
    if (it == flights_.end()) return;
    it->second.testimony.exits[exit->rank] = *exit;
    out.batch.rank_exits.push_back(*exit);
  }
  if (const auto* end = std::get_if<AttemptEnd>(&message)) {
    const auto it = flights_.find(end->attempt);
    if (it == flights_.end()) return;
    it->second.testimony.end = *end;
    out.batch.ends.push_back(*end);
    if (!end->clean) {
      out.tainted = true;
      out.notes.push_back(fmt::format("attempt {} was not left clean: {}", end->attempt, end->dirt));
    }
    Landing landing{std::move(it->second), {}};
    flights_.erase(it);
    count(landing.flight, -1);
    landing.result = verdict(landing.flight);
    out.landed.push_back(std::move(landing));
  }
}

std::vector<Flight> Flights::abandon() {
  std::vector<Flight> left;
  for (auto& [id, flight] : flights_) left.push_back(std::move(flight));
  flights_.clear();
  nodes_ = 0, seconds_ = 0;
  return left;
}

}  // namespace sweep::run
