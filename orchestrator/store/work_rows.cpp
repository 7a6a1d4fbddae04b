// Allocations and attempts: what is held, what was posted, what is under way.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <random>

#include "orchestrator/store/rows.h"
#include "orchestrator/store/store_file.h"
#include "orchestrator/store/stored_rows.h"
#include "orchestrator/store/sweep_rows.h"
#include "schema/codec.h"

namespace sweep::store {
namespace {

// The attempt without its trial, which the database has already.
std::string request_json(const Attempt& attempt) {
  nlohmann::json request = to_json(attempt);
  for (const char* known : {"id", "trial_id", "trial"}) request.erase(known);
  return dump(request);
}

constexpr double kNsInSecond = 1e9;

AllocationRow allocation_row(StoredAllocation&& stored, i64 now) {
  AllocationRow row;
  row.id = std::move(stored.id);
  row.spool = std::move(stored.spool);
  row.where = std::move(stored.hosts);
  row.launcher = std::move(stored.launcher);
  row.incarnation = stored.incarnation;
  row.offset = static_cast<std::uint64_t>(stored.read_offset);
  row.ended = stored.ended_unix_ns.has_value();
  row.pid = stored.pid;
  row.gpus = stored.nodes.value_or(0) * stored.gpus.value_or(0);
  if (stored.started_unix_ns)
    row.held_s =
        static_cast<double>(std::max<i64>(0, stored.ended_unix_ns.value_or(now) - *stored.started_unix_ns)) /
        kNsInSecond;
  return row;
}

std::vector<AllocationRow> allocation_rows(Transaction& work, const Selects& selects, std::string_view which,
                                           i64 sweep, i64 now) {
  std::vector<AllocationRow> out;
  auto rows = work.rows(
      fmt::format("SELECT {} FROM allocation a WHERE a.sweep = ? {} ORDER BY a.created_unix_ns, a.id",
                  select_list(selects.columns, "allocation", "a", stored_fields<StoredAllocation>()), which),
      sweep);
  while (rows.next()) {
    StoredAllocation stored;
    read_fields(rows, 0, stored);
    out.push_back(allocation_row(std::move(stored), now));
  }
  return out;
}

}  // namespace

void read_request(const Rows& rows, int at, Attempt& attempt) {
  auto read = parse_json(rows.text(at)).and_then([](const auto& json) { return from_json<Attempt>(json); });
  if (!read) return refuse_text(rows, at, "request", read.error().message);
  attempt = std::move(*read);
}

// The id names the spool folder too: numbered for people, random enough that two databases may share a spool
// root.
Expected<AllocationRow> WorkQueue::create_allocation(i64 sweep, const std::string& launcher,
                                                     const std::filesystem::path& spool_root) {
  Transaction work(*file_.db, Transaction::kWrite);
  file_.leases.guard(work, sweep);
  AllocationRow row;
  const i64 number = work.one<i64>("SELECT count(*) FROM allocation").value_or(0) + 1;
  row.id = fmt::format("a{:04}-{:08x}", number, std::random_device{}());
  row.spool = (spool_root / row.id).string();
  row.launcher = launcher;
  StoredAllocation stored;
  stored.id = row.id;
  stored.sweep = sweep;
  stored.launcher = launcher;
  stored.spool = row.spool;
  stored.created_unix_ns = file_.leases.now();
  write_allocation(work, stored);
  return work.commit(std::move(row));
}

Expected<void> WorkQueue::allocation_started(const std::string& id, const std::string& where, i64 pid,
                                             const Held& held) {
  Transaction work(*file_.db, Transaction::kWrite);
  if (const auto sweep = sweep_of_allocation(work, id)) file_.leases.guard(work, *sweep);
  const i64 started = file_.leases.now() - static_cast<i64>(held.since_s * kNsInSecond);
  work.run(R"(
      UPDATE allocation SET whereabouts = ?, pid = ?, nodes = ?, gpus = ?,
                            started_unix_ns = COALESCE(started_unix_ns, ?)
      WHERE id = ?)",
           where, pid, held.nodes, held.gpus, started, id);
  return work.commit();
}

Expected<void> WorkQueue::end_allocation(const std::string& id, const std::string& reason,
                                         const AllocationEnd& end) {
  Transaction work(*file_.db, Transaction::kWrite);
  if (const auto sweep = sweep_of_allocation(work, id)) file_.leases.guard(work, *sweep);
  const i64 now = file_.leases.now();
  std::optional<i64> held_ns;
  if (end.held_s) held_ns = static_cast<i64>(*end.held_s * kNsInSecond);
  work.run(R"(
      UPDATE allocation SET ended_unix_ns = COALESCE(started_unix_ns + ?1, max(?2, COALESCE(started_unix_ns, created_unix_ns))),
                            end_reason = ?3
      WHERE id = ?4 AND ended_unix_ns IS NULL)",
           held_ns, std::min(now, end.last_message_unix_ns.value_or(now)), reason, id);
  return work.commit();
}

Expected<GpuSeconds> WorkQueue::gpu_seconds(i64 sweep) {
  Transaction work(*file_.db, Transaction::kRead);
  GpuSeconds out;
  auto rows = work.rows(R"(
      SELECT ended_unix_ns IS NOT NULL,
             sum(max(0, COALESCE(ended_unix_ns, ?) - started_unix_ns) / 1e9 * nodes * gpus)
      FROM allocation WHERE sweep = ? AND started_unix_ns IS NOT NULL GROUP BY 1)",
                        file_.leases.now(), sweep);
  while (rows.next()) (rows.get<bool>(0) ? out.ended : out.open) = rows.get<double>(1);
  return work.commit(out);
}

Expected<std::vector<AllocationRow>> WorkQueue::open_allocations(i64 sweep) {
  Transaction work(*file_.db, Transaction::kRead);
  auto out = allocation_rows(work, file_.selects, "AND a.ended_unix_ns IS NULL", sweep, file_.leases.now());
  return work.commit(std::move(out));
}

Expected<std::vector<AllocationRow>> WorkQueue::allocations(i64 sweep) {
  Transaction work(*file_.db, Transaction::kRead);
  auto out = allocation_rows(work, file_.selects, "", sweep, file_.leases.now());
  return work.commit(std::move(out));
}

Expected<void> WorkQueue::exclude_host(i64 sweep, const ExcludedHost& excluded) {
  Transaction work(*file_.db, Transaction::kWrite);
  file_.leases.guard(work, sweep);
  work.run("INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)",
           fmt::format("{}{}/{}", excluded_hosts_key(sweep), excluded.launcher, excluded.host), excluded.why);
  return work.commit();
}

Expected<std::vector<ExcludedHost>> WorkQueue::excluded_hosts(i64 sweep) {
  Transaction work(*file_.db, Transaction::kRead);
  std::vector<ExcludedHost> out;
  {
    const auto prefix = excluded_hosts_key(sweep);
    auto rows = work.rows(R"(
        SELECT substr(key, length(?1) + 1), value FROM meta WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key)",
                          prefix);
    while (rows.next()) {
      const auto name = rows.get<std::string>(0);
      const auto slash = name.find('/');
      out.push_back({name.substr(0, slash), name.substr(slash + 1), rows.get<std::string>(1)});
    }
  }
  return work.commit(std::move(out));
}

Expected<void> WorkQueue::readmit_host(i64 sweep, const std::string& host) {
  SWEEP_GET(const auto excluded, excluded_hosts(sweep));
  Transaction work(*file_.db, Transaction::kWrite);
  file_.leases.guard(work, sweep);
  std::string names;
  bool found = false;
  for (const auto& each : excluded) {
    names += (names.empty() ? "" : ", ") + each.host;
    if (each.host != host) continue;
    found = true;
    work.run("DELETE FROM meta WHERE key = ?",
             fmt::format("{}{}/{}", excluded_hosts_key(sweep), each.launcher, host));
  }
  if (!found)
    work.refuse(Error{fmt::format("host '{}' is not excluded; {}", host,
                                  names.empty() ? "no host of this sweep is" : "these hosts are: " + names),
                      ErrorKind::kNotFound, host});
  add_event_row(work, sweep, file_.leases.now(), EventKind::kReadmitted,
                fmt::format("node {} gets work again", host));
  return work.commit();
}

Expected<Attempt> WorkQueue::begin_attempt(i64 sweep, const std::string& allocation, const Attempt& wanted) {
  Transaction work(*file_.db, Transaction::kWrite);
  file_.leases.require(work, sweep);
  if (sweep_of_allocation(work, allocation).value_or(sweep) != sweep)
    work.refuse(fmt::format("allocation '{}' belongs to another sweep", allocation));
  const auto entry = work.one<i64>(R"(
      SELECT p.key FROM plan_entry p JOIN trial t ON t.key = p.trial
      WHERE p.sweep = ? AND t.id = ? AND p.state = State::kPending)",
                                   sweep, wanted.trial_id);
  if (!entry) work.refuse(fmt::format("trial {} is not waiting to be run in this sweep", wanted.trial_id));
  Attempt begun = wanted;
  begun.id = insert_attempt(work, {entry.value_or(0), allocation, State::kPosted, wanted.trial.world(),
                                   request_json(wanted), file_.leases.now(), std::nullopt});
  work.run("UPDATE plan_entry SET state = State::kPosted, attempts = attempts + 1 WHERE key = ?", entry);
  return work.commit(std::move(begun));
}

namespace {

std::vector<AttemptRow> attempt_rows(Transaction& work, const Selects& selects, const std::string& where,
                                     std::string_view key) {
  std::vector<AttemptRow> out;
  SpecCache specs;
  auto rows = work.rows(fmt::format(R"(
      SELECT a.id, t.id, a.state, a.allocation, a.request, t.spec, p.model, p.labels, {}
      FROM attempt a
      JOIN plan_entry p ON p.key = a.entry
      JOIN trial t ON t.key = p.trial
      WHERE {} ORDER BY a.id)",
                                    selects.axes, where),
                        key);
  while (rows.next()) {
    AttemptRow& row = out.emplace_back();
    rows.read(0, row.id);
    rows.read(1, row.trial_id);
    rows.read(2, row.state);
    rows.read(3, row.allocation);
    read_request(rows, 4, row.attempt);
    row.attempt.id = row.id;
    row.attempt.trial_id = row.trial_id;
    row.attempt.trial.spec = spec_of(specs, rows.text(5));
    rows.read(6, row.attempt.trial.model);
    rows.read(7, row.attempt.trial.labels);
    read_axes(rows, 8, row.attempt.trial);
  }
  return out;
}

}  // namespace

Expected<std::vector<AttemptRow>> WorkQueue::unfinished_attempts(const std::string& allocation) {
  Transaction work(*file_.db, Transaction::kRead);
  auto out = attempt_rows(work, file_.selects, "a.allocation = ? AND a.state < State::kFinished", allocation);
  return work.commit(std::move(out));
}

Expected<std::vector<AttemptRow>> WorkQueue::attempts(i64 sweep, const std::string& trial_id) {
  Transaction work(*file_.db, Transaction::kRead);
  auto out = attempt_rows(work, file_.selects,
                          fmt::format(R"(
          a.entry = (SELECT x.key FROM plan_entry x JOIN trial y ON y.key = x.trial
                     WHERE x.sweep = {} AND y.id = ?))",
                                      sweep),
                          trial_id);
  return work.commit(std::move(out));
}

}  // namespace sweep::store
