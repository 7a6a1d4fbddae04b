#include "orchestrator/run/recovery.h"

#include <fmt/format.h>

#include <chrono>
#include <map>

#include "orchestrator/launch/leftovers.h"
#include "orchestrator/run/flights.h"
#include "schema/spool.h"

namespace sweep::run {
namespace {

Expected<void> ingest_rest(store::Store& store, const store::AllocationRow& row, Flights& flights,
                           Observer& observer) {
  std::uint64_t offset = row.offset;
  for (;;) {
    auto bytes = spool::read_from(spool::outbox(row.spool), offset);
    if (!bytes) return tl::unexpected(bytes.error());
    auto absorbed = flights.absorb(row.id, offset, *bytes);
    if (absorbed.batch.new_offset == offset) return {};
    if (auto stored = store.ingest(absorbed.batch); !stored) return stored;
    for (const auto& landing : absorbed.landed) observer.on_result(landing.flight.entry, landing.result);
    offset = absorbed.batch.new_offset;
  }
}

using Plan = std::map<std::string, PlanEntry>;

// Of a trial that is no longer in the plan.
PlanEntry entry_of(const store::AttemptRow& row) {
  PlanEntry entry;
  entry.id = row.trial_id;
  entry.trial = row.attempt.trial;
  return entry;
}

// What had been ingested of an attempt before the crash; the rest of the outbox adds to it.
Expected<ingest::Testimony> known_of(store::Store& store, i64 attempt) {
  auto stored = store.testimony(attempt);
  if (!stored) return tl::unexpected(stored.error());
  ingest::Testimony known;
  for (auto& record : stored->records) known.records[record.rank] = std::move(record);
  for (auto& exit : stored->exits) known.exits[exit.rank] = std::move(exit);
  return known;
}

Expected<void> close(store::Store& store, const store::AllocationRow& row, const Plan& plan,
                     Observer& observer) {
  observer.on_note(fmt::format("closing allocation {} that an earlier run left behind", row.id));
  if (const i64 ended = launch::clean_leftovers(row.spool, row.id); ended > 0)
    observer.on_note(fmt::format("ended {} processes it had left running", ended));
  const auto unfinished = store.unfinished_attempts(row.id);
  if (!unfinished) return tl::unexpected(unfinished.error());
  Flights flights;
  for (const auto& each : *unfinished) {
    auto known = known_of(store, each.id);
    if (!known) return tl::unexpected(known.error());
    const auto entry = plan.find(each.trial_id);
    flights.add(each.attempt, entry != plan.end() ? entry->second : entry_of(each), std::move(*known));
  }
  if (auto rest = ingest_rest(store, row, flights, observer); !rest) return rest;
  for (const Flight& flight : flights.abandon()) {
    const auto result =
        abandoned(flight.attempt, Outcome::kCancelled, "the run that started it ended before it did");
    if (auto stored = store.finish_attempt(result); !stored) return stored;
  }
  return store.end_allocation(row.id, "left behind by an earlier run");
}

}  // namespace

Result abandoned(const Attempt& attempt, Outcome outcome, const std::string& reason) {
  Result result;
  result.attempt = attempt.id;
  result.trial_id = attempt.trial_id;
  result.outcome = outcome;
  result.reason = reason;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  result.finished_unix_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  return result;
}

Expected<void> recover(store::Store& store, i64 sweep, Observer& observer) {
  const auto open = store.open_allocations(sweep);
  if (!open) return tl::unexpected(open.error());
  if (open->empty()) return {};
  auto entries = store.plan(sweep);
  if (!entries) return tl::unexpected(entries.error());
  Plan plan;
  for (auto& entry : *entries) plan[entry.id] = std::move(entry);
  for (const auto& row : *open)
    if (auto closed = close(store, row, plan, observer); !closed) return closed;
  return {};
}

}  // namespace sweep::run
