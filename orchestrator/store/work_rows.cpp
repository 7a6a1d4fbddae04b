// Allocations and attempts: what is held, what was posted, what is under way.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <random>

#include "orchestrator/store/settle.h"
#include "orchestrator/store/sqlite_store.h"
#include "orchestrator/store/trial_rows.h"
#include "schema/codec.h"

namespace sweep::store {
namespace {

// The attempt without its trial, which the database has already.
std::string request_json(const Attempt& attempt) {
  return dump({{"measure", to_json(attempt.measure)},
               {"deadlines", to_json(attempt.deadlines)},
               {"log_limit_bytes", attempt.log_limit_bytes},
               {"start", attempt.start},
               {"usd_per_node_hour", to_json(attempt)["usd_per_node_hour"]},
               {"rehearsed_ranks", attempt.rehearsed_ranks}});
}

void read_request(std::string_view json, Attempt& attempt) {
  const auto parsed = parse_json(json);
  if (!parsed) return;
  if (auto read = from_json<Attempt>(*parsed)) {
    attempt.measure = read->measure, attempt.deadlines = read->deadlines;
    attempt.log_limit_bytes = read->log_limit_bytes, attempt.start = read->start;
    attempt.usd_per_node_hour = read->usd_per_node_hour;
    attempt.rehearsed_ranks = std::move(read->rehearsed_ranks);
  }
}

constexpr const char* kAllocationColumns =
    "SELECT id, spool, whereabouts, launcher, incarnation, read_offset, ended_unix_ns IS NOT NULL, pid, "
    "ended_unix_ns, {} FROM allocation WHERE sweep = ? {} ORDER BY created_unix_ns, id";

constexpr double kNsInSecond = 1e9;

// A file of an earlier version, opened for reading alone, does not say what its allocations held.
bool says_what_was_held(Transaction& work) {
  return work.one<i64>("SELECT 1 FROM pragma_table_info('allocation') WHERE name = 'started_unix_ns'")
      .has_value();
}

AllocationRow read_allocation(const Rows& rows, i64 now) {
  AllocationRow row;
  rows.read(0, row.id), rows.read(1, row.spool), rows.read(2, row.where), rows.read(3, row.launcher);
  rows.read(4, row.incarnation);
  row.offset = static_cast<std::uint64_t>(rows.get<i64>(5));
  rows.read(6, row.ended), rows.read(7, row.pid);
  const auto ended = rows.get<std::optional<i64>>(8), started = rows.get<std::optional<i64>>(9);
  if (started)
    row.held_s = static_cast<double>(std::max<i64>(0, ended.value_or(now) - *started)) / kNsInSecond;
  return row;
}

std::vector<AllocationRow> allocation_rows(Transaction& work, const std::string& which, i64 sweep, i64 now) {
  std::vector<AllocationRow> out;
  auto rows = work.rows(
      fmt::format(kAllocationColumns, says_what_was_held(work) ? "started_unix_ns" : "NULL", which), sweep);
  while (rows.next()) out.push_back(read_allocation(rows, now));
  return out;
}

}  // namespace

std::optional<i64> SqliteStore::sweep_of_allocation(Transaction& work, const std::string& id) {
  const auto sweep = work.one<i64>("SELECT sweep FROM allocation WHERE id = ?", id);
  if (!sweep) work.refuse(fmt::format("database '{}' knows no allocation '{}'", db_->path().string(), id));
  return sweep;
}

// The id names the spool folder too: numbered for people, random enough that two databases may share a spool
// root.
Expected<AllocationRow> SqliteStore::create_allocation(i64 sweep, const std::string& launcher,
                                                       const std::filesystem::path& spool_root) {
  Transaction work(*db_, Transaction::kWrite);
  leases_.guard(work, sweep);
  AllocationRow row;
  const i64 number = work.one<i64>("SELECT count(*) FROM allocation").value_or(0) + 1;
  row.id = fmt::format("a{:04}-{:08x}", number, std::random_device{}());
  row.spool = (spool_root / row.id).string();
  row.launcher = launcher;
  work.run("INSERT INTO allocation(id, sweep, launcher, spool, created_unix_ns) VALUES (?, ?, ?, ?, ?)",
           row.id, sweep, launcher, row.spool, leases_.now());
  return work.commit(std::move(row));
}

Expected<void> SqliteStore::allocation_started(const std::string& id, const std::string& where, i64 pid,
                                               const Held& held) {
  Transaction work(*db_, Transaction::kWrite);
  if (const auto sweep = sweep_of_allocation(work, id)) leases_.guard(work, *sweep);
  const i64 started = leases_.now() - static_cast<i64>(held.since_s * kNsInSecond);
  work.run(
      "UPDATE allocation SET whereabouts = ?, pid = ?, nodes = ?, gpus = ?, started_unix_ns = "
      "coalesce(started_unix_ns, ?) WHERE id = ?",
      where, pid, held.nodes, held.gpus, started, id);
  return work.commit();
}

Expected<void> SqliteStore::end_allocation(const std::string& id, const std::string& reason,
                                           std::optional<i64> last_word_unix_ns) {
  Transaction work(*db_, Transaction::kWrite);
  if (const auto sweep = sweep_of_allocation(work, id)) leases_.guard(work, *sweep);
  const i64 now = leases_.now();
  work.run(
      "UPDATE allocation SET ended_unix_ns = max(?, coalesce(started_unix_ns, created_unix_ns)), end_reason "
      "= ? WHERE id = ? AND ended_unix_ns IS NULL",
      std::min(now, last_word_unix_ns.value_or(now)), reason, id);
  return work.commit();
}

Expected<GpuSeconds> SqliteStore::gpu_seconds(i64 sweep) {
  Transaction work(*db_, Transaction::kRead);
  GpuSeconds out;
  if (!says_what_was_held(work)) return work.commit(out);
  auto rows = work.rows(
      "SELECT ended_unix_ns IS NOT NULL, sum(max(0, coalesce(ended_unix_ns, ?) - started_unix_ns) / 1e9 * "
      "nodes * gpus) FROM allocation WHERE sweep = ? AND started_unix_ns IS NOT NULL GROUP BY 1",
      leases_.now(), sweep);
  while (rows.next()) (rows.get<bool>(0) ? out.ended : out.open) = rows.get<double>(1);
  return work.commit(out);
}

Expected<std::vector<AllocationRow>> SqliteStore::open_allocations(i64 sweep) {
  Transaction work(*db_, Transaction::kRead);
  auto out = allocation_rows(work, "AND ended_unix_ns IS NULL", sweep, leases_.now());
  return work.commit(std::move(out));
}

Expected<std::vector<AllocationRow>> SqliteStore::allocations(i64 sweep) {
  Transaction work(*db_, Transaction::kRead);
  auto out = allocation_rows(work, "", sweep, leases_.now());
  return work.commit(std::move(out));
}

Expected<Attempt> SqliteStore::begin_attempt(i64 sweep, const std::string& allocation,
                                             const Attempt& wanted) {
  Transaction work(*db_, Transaction::kWrite);
  leases_.require(work, sweep);
  if (sweep_of_allocation(work, allocation).value_or(sweep) != sweep)
    work.refuse(fmt::format("allocation '{}' belongs to another sweep", allocation));
  const auto entry = work.one<i64>(
      "SELECT p.key FROM plan_entry p JOIN trial t ON t.key = p.trial WHERE p.sweep = ? AND t.id = ? AND "
      "p.state = State::kPending",
      sweep, wanted.trial_id);
  if (!entry) work.refuse(fmt::format("trial {} is not waiting to be run in this sweep", wanted.trial_id));
  const std::string request = request_json(wanted);
  static const std::string insert = fmt::format(
      "INSERT INTO attempt(entry, allocation, state, world, request, posted_unix_ns) VALUES (?1, ?3, ?4, ?5, "
      "?6, "
      "{})",
      kPostedAfter);
  work.run(insert, entry.value_or(0), leases_.now(), allocation, State::kPosted, wanted.trial.world(),
           request);
  Attempt begun = wanted;
  begun.id = work.last_id();
  work.run("UPDATE plan_entry SET state = ?, attempts = attempts + 1 WHERE key = ?", State::kPosted, entry);
  return work.commit(std::move(begun));
}

std::vector<AttemptRow> SqliteStore::attempt_rows(Transaction& work, const std::string& where,
                                                  std::string_view key) {
  std::vector<AttemptRow> out;
  SpecCache specs;
  auto rows = work.rows(
      "SELECT a.id, t.id, a.state, a.allocation, a.request, t.spec, p.model, p.labels, " + selects_.axes +
          " FROM attempt a JOIN plan_entry p ON p.key = a.entry JOIN trial t ON t.key = p.trial WHERE " +
          where + " ORDER BY a.id",
      key);
  while (rows.next()) {
    AttemptRow row;
    rows.read(0, row.id), rows.read(1, row.trial_id), rows.read(2, row.state), rows.read(3, row.allocation);
    read_request(rows.text(4), row.attempt);
    row.attempt.id = row.id, row.attempt.trial_id = row.trial_id;
    row.attempt.trial.spec = spec_of(specs, rows.text(5));
    rows.read(6, row.attempt.trial.model), rows.read(7, row.attempt.trial.labels);
    read_axes(rows, 8, row.attempt.trial);
    out.push_back(std::move(row));
  }
  return out;
}

Expected<std::vector<AttemptRow>> SqliteStore::unfinished_attempts(const std::string& allocation) {
  Transaction work(*db_, Transaction::kRead);
  auto out = attempt_rows(work, "a.allocation = ? AND a.state < State::kFinished", allocation);
  return work.commit(std::move(out));
}

Expected<std::vector<AttemptRow>> SqliteStore::attempts(i64 sweep, const std::string& trial_id) {
  Transaction work(*db_, Transaction::kRead);
  auto out = attempt_rows(
      work,
      fmt::format(
          "a.entry = (SELECT x.key FROM plan_entry x JOIN trial y ON y.key = x.trial WHERE x.sweep = {} AND "
          "y.id = ?)",
          sweep),
      trial_id);
  return work.commit(std::move(out));
}

}  // namespace sweep::store
