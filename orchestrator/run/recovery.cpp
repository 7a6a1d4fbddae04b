#include "orchestrator/run/recovery.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/expected.h"
#include "base/files.h"
#include "base/time.h"
#include "orchestrator/launch/allocation_record.h"
#include "orchestrator/run/in_flight.h"
#include "runtime/attempt_token.h"
#include "schema/frame.h"
#include "schema/spool.h"

namespace sweep::run {
namespace {

Expected<void> ingest_rest(store::Store& store, const store::AllocationRow& row, InFlightAttempts& attempts,
                           Observer& observer) {
  std::uint64_t offset = row.offset;
  for (;;) {
    SWEEP_GET(auto bytes, files::read_from(spool::outbox(row.spool), offset));
    const auto chunk = attempts.ingest_chunk(row.id, offset, bytes);
    if (chunk.batch.new_offset == offset) return {};
    SWEEP_TRY(store.ingest(chunk.batch));
    for (const auto& each : chunk.finished) observer.on_result(each.in_flight.entry, each.result);
    offset = chunk.batch.new_offset;
  }
}

using Plan = std::map<std::string, PlanEntry>;

// The entry of a trial that is no longer in the plan.
PlanEntry entry_of(const store::AttemptRow& row) {
  PlanEntry entry;
  entry.id = row.trial_id;
  entry.trial = row.attempt.trial;
  return entry;
}

// The records of an attempt that were stored before the crash; the rest of the outbox adds to them.
Expected<ingest::AttemptReports> known_of(store::Store& store, i64 attempt) {
  SWEEP_GET(auto stored, store.records_of(attempt));
  ingest::AttemptReports known;
  for (auto& record : stored.records) known.records[record.rank] = std::move(record);
  for (auto& exit : stored.exits) known.exits[exit.rank] = std::move(exit);
  return known;
}

// Attempts of the allocation that have not ended, by the store.
Expected<InFlightAttempts> unfinished_of(store::Store& store, const store::AllocationRow& row,
                                         const Plan& plan) {
  SWEEP_GET(const auto unfinished, store.unfinished_attempts(row.id));
  InFlightAttempts attempts;
  for (const auto& each : unfinished) {
    SWEEP_GET(auto known, known_of(store, each.id));
    const auto entry = plan.find(each.trial_id);
    attempts.add(each.attempt, entry != plan.end() ? entry->second : entry_of(each), std::move(known),
                 each.state == State::kRunning);
  }
  return attempts;
}

Expected<void> close(store::Store& store, const store::AllocationRow& row, const Plan& plan,
                     Observer& observer) {
  observer.on_note(fmt::format("closing allocation {}, which its run left open", row.id));
  if (const i64 ended = kill_orphans(row.spool, row.id); ended > 0)
    observer.on_note(fmt::format("ended {} processes it had left running", ended));
  SWEEP_GET(auto attempts, unfinished_of(store, row, plan));
  SWEEP_TRY(ingest_rest(store, row, attempts, observer));
  for (const InFlightAttempt& each : attempts.abandon()) {
    const auto result =
        abandoned(each.attempt, Outcome::kCancelled, "the run that started it ended before it did");
    SWEEP_TRY(store.finish_attempt(result));
  }
  return store.end_allocation(row.id, "left behind by an earlier run",
                              {.last_message_unix_ns = last_message_unix_ns(row.spool)});
}

// Ingests an allocation that may still run: the run that adopts it ingests what comes later.
Expected<void> ingest_open(store::Store& store, const store::AllocationRow& row, const Plan& plan,
                           Observer& observer) {
  SWEEP_GET(auto attempts, unfinished_of(store, row, plan));
  SWEEP_TRY(ingest_rest(store, row, attempts, observer));
  observer.on_note(
      fmt::format("allocation {} ({}) may still run: what it wrote so far is stored; `sweep resume` "
                  "goes on with it, `sweep clean` ends it",
                  row.id, row.launcher));
  return {};
}

// Attempts that were committed in the store and never reached the inbox: the crash came between.
Expected<void> post_missing(const store::AllocationRow& row, const InFlightAttempts& unfinished,
                            launch::Launcher& launcher) {
  SWEEP_GET(const auto bytes, files::read_from(spool::inbox(row.spool), 0, SIZE_MAX));
  std::set<i64> posted;
  for (const auto& line : spool::parse(bytes).lines)
    if (line.kind == spool::kAttempt && line.body.is_object()) posted.insert(integer_of(line.body, "id"));
  for (const Attempt& attempt : unfinished.attempts())
    if (!posted.contains(attempt.id)) SWEEP_TRY(launcher.post_attempt(row.id, attempt));
  return {};
}

Expected<std::optional<HeldAllocation>> adopt(store::Store& store, const store::AllocationRow& row,
                                              const Plan& plan, Observer& observer, const Adopter& by) {
  if (by.launcher == nullptr) return std::optional<HeldAllocation>();
  if (row.launcher != by.name) {
    if (!launch::has_record(row.spool)) return std::optional<HeldAllocation>();
    return fail(
        fmt::format("allocation {} of an earlier run was obtained with --on {} and may still run; go on "
                    "with --on {}, or end it first: `sweep clean` shows it, and ends it with --yes",
                    row.id, row.launcher, row.launcher));
  }
  SWEEP_GET(auto taken, by.launcher->adopt(row.id, row.spool, row.incarnation, row.offset));
  if (!taken) return std::optional<HeldAllocation>();
  SWEEP_GET(auto attempts, unfinished_of(store, row, plan));
  SWEEP_TRY(post_missing(row, attempts, *by.launcher));
  observer.on_note(fmt::format("allocation {} of an earlier run is taken over ({})", row.id,
                               row.where.empty() ? "not started yet" : row.where));
  HeldAllocation held;
  held.request = std::move(*taken);
  held.attempts = std::move(attempts);
  held.adopted = true;
  held.held_before_s = row.held_s;
  return std::optional<HeldAllocation>(std::move(held));
}

}  // namespace

i64 last_message_unix_ns(const std::filesystem::path& spool) {
  struct stat found {};
  if (::stat(spool::outbox(spool).c_str(), &found) != 0) return 0;
  return i64{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec;
}

Expected<store::GpuSeconds> gpu_seconds_held(store::Store& store, i64 sweep) {
  SWEEP_GET(const auto holder, store.lease(sweep));
  auto held = store.gpu_seconds(sweep);
  // A process of another host cannot be asked: its heartbeat tells.
  const bool may_be_running =
      holder && (holder->process == store::Process::kAlive || holder->beat != store::Beat::kSilent);
  if (!held || may_be_running) return held;
  SWEEP_GET(const auto rows, store.open_allocations(sweep));
  held->open = 0;
  for (const auto& row : rows) {
    const double silent_s = static_cast<double>(unix_ns_now() - last_message_unix_ns(row.spool)) * 1e-9;
    held->open += std::clamp(row.held_s - silent_s, 0.0, row.held_s) * static_cast<double>(row.gpus);
  }
  return held;
}

Result abandoned(const Attempt& attempt, Outcome outcome, const std::string& reason) {
  Result result;
  result.attempt = attempt.id;
  result.trial_id = attempt.trial_id;
  result.outcome = outcome;
  result.reason = reason;
  result.finished_unix_ns = unix_ns_now();
  return result;
}

Expected<std::vector<HeldAllocation>> recover(store::Store& store, i64 sweep, Observer& observer,
                                              const Adopter& by) {
  std::vector<HeldAllocation> adopted;
  SWEEP_GET(const auto open, store.open_allocations(sweep));
  if (open.empty()) return adopted;
  SWEEP_GET(auto entries, store.plan(sweep));
  Plan plan;
  for (auto& entry : entries) plan[entry.id] = std::move(entry);
  for (const auto& row : open) {
    SWEEP_GET(auto taken, adopt(store, row, plan, observer, by));
    const bool left = by.leave && launch::has_record(row.spool);
    if (taken)
      adopted.push_back(std::move(*taken));
    else if (auto closed = left ? ingest_open(store, row, plan, observer) : close(store, row, plan, observer);
             !closed)
      return tl::unexpected(closed.error());
  }
  return adopted;
}

}  // namespace sweep::run
