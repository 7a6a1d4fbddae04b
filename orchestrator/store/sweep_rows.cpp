#include "orchestrator/store/sweep_rows.h"

#include <fmt/format.h>

#include "base/expected.h"
#include "orchestrator/store/record_sql.h"

namespace sweep::store {
namespace {

std::vector<SweepRow> read_sweeps(Rows&& rows) {
  std::vector<SweepRow> out;
  while (rows.next()) {
    SweepRow& row = out.emplace_back();
    rows.read(0, row.id);
    read_fields(rows, 1, row);
  }
  return out;
}

std::string select(std::string_view rest) {
  return fmt::format("SELECT id, {} FROM sweep {}", column_list({}, stored_fields<SweepRow>()), rest);
}

}  // namespace

std::vector<SweepRow> all_sweeps(Transaction& work) {
  return read_sweeps(work.rows(select("ORDER BY id")));
}

std::optional<SweepRow> sweep_named(Transaction& work, const std::string& name) {
  auto found = read_sweeps(work.rows(select("WHERE name = ?"), name));
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

SweepOptions options_of(Transaction& work, i64 sweep) {
  auto found = read_sweeps(work.rows(select("WHERE id = ?"), sweep));
  return found.empty() ? SweepOptions() : std::move(found.front().options);
}

void write_sweep(Transaction& work, const SweepRow& row) {
  static const std::string sql = upsert_statement("sweep", {"name"}, stored_fields<SweepRow>());
  run_with_fields(work, sql, row);
}

std::string excluded_hosts_key(i64 sweep) {
  return fmt::format("excluded_host/{}/", sweep);
}

void add_event_row(Transaction& work, i64 sweep, i64 unix_ns, EventKind kind, std::string_view text,
                   std::optional<i64> attempt) {
  work.run("INSERT INTO event(sweep, unix_ns, kind, text, attempt) VALUES (?, ?, ?, ?, ?)", sweep, unix_ns,
           to_string(kind), text, attempt);
}

std::optional<i64> sweep_of_allocation(Transaction& work, const std::string& id) {
  const auto sweep = work.one<i64>("SELECT sweep FROM allocation WHERE id = ?", id);
  if (!sweep)
    work.refuse(Error{fmt::format("database '{}' knows no allocation '{}'", work.db().path().string(), id),
                      ErrorKind::kNotFound, id});
  return sweep;
}

void write_allocation(Transaction& work, const StoredAllocation& allocation) {
  static const std::string sql =
      insert_statement("INSERT", "allocation", {}, stored_fields<StoredAllocation>());
  run_with_fields(work, sql, allocation);
}

i64 insert_attempt(Transaction& work, const NewAttempt& attempt) {
  work.run(R"(
      INSERT INTO attempt(entry, allocation, state, world, request, ended_unix_ns, posted_unix_ns)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6,
              max(?7, (SELECT COALESCE(max(posted_unix_ns) + 1, 0) FROM attempt WHERE entry = ?1))))",
           attempt.entry, attempt.allocation, attempt.state, attempt.world, attempt.request,
           attempt.ended_unix_ns, attempt.posted_unix_ns);
  return work.last_id();
}

}  // namespace sweep::store
