#include <fmt/format.h>

#include "orchestrator/store/columns.h"
#include "orchestrator/store/rows.h"
#include "schema/codec.h"

namespace sweep::store {
namespace {

std::vector<StepSample> read_samples(Transaction& work, const TableColumns& columns, i64 attempt, i64 rank) {
  const std::string sql =
      fmt::format("SELECT {} FROM step_sample s WHERE s.attempt = ? AND s.rank = ? ORDER BY s.repeat, s.step",
                  select_list(columns, "step_sample", "s", stored_fields<StepSample>()));
  std::vector<StepSample> out;
  auto rows = work.rows(sql, attempt, rank);
  while (rows.next()) read_fields(rows, 0, out.emplace_back());
  return out;
}

}  // namespace

void write_record(Transaction& work, const RankRecord& record) {
  static const std::string write_record =
      upsert_statement("rank_record", {"attempt", "rank"}, stored_fields<RankRecord>());
  static const std::string write_sample =
      insert_statement("INSERT OR REPLACE", "step_sample", {"attempt", "rank"}, stored_fields<StepSample>());
  work.run("DELETE FROM step_sample WHERE attempt = ? AND rank = ?", record.attempt, record.rank);
  run_with_fields(work, write_record, record);
  Statement* insert = work.ready(write_sample);
  for (const StepSample& sample : record.samples) {
    if (!insert || work.failed()) return;
    insert->put(1, record.attempt);
    insert->put(2, record.rank);
    put_fields(*insert, 3, sample);
    work.finish(*insert);
  }
}

void write_exit(Transaction& work, const RankExit& exit) {
  static const std::string sql =
      upsert_statement("rank_record", {"attempt", "rank"}, stored_fields<RankExit>());
  run_with_fields(work, sql, exit);
}

void write_end(Transaction& work, const AttemptEnd& end) {
  static const std::string sql = update_statement("attempt", stored_fields<AttemptEnd>());
  run_with_fields(work, sql, end);
}

void write_started(Transaction& work, i64 attempt, i64 unix_ns) {
  work.run(R"(
      UPDATE attempt SET state = State::kRunning, started_unix_ns = ?
      WHERE id = ? AND state < State::kFinished)",
           unix_ns, attempt);
  work.run(R"(
      UPDATE plan_entry SET state = State::kRunning
      WHERE key = (SELECT entry FROM attempt WHERE id = ?) AND state = State::kPosted)",
           attempt);
}

void write_node(Transaction& work, std::string_view allocation, const NodeRecord& node) {
  static const std::string sql =
      insert_statement("INSERT OR REPLACE", "environment", {"allocation"}, stored_fields<NodeRecord>());
  if (Statement* insert = work.ready(sql)) {
    insert->put(1, allocation);
    put_fields(*insert, 2, node);
    work.finish(*insert);
  }
}

void write_result(Transaction& work, const Result& result) {
  static const std::string sql = insert_statement("INSERT OR REPLACE", "result", {}, result_fields());
  if (Statement* insert = work.ready(sql)) {
    put_metrics(*insert, put_fields(*insert, 1, result), result.metrics);
    work.finish(*insert);
  }
  work.run("UPDATE attempt SET state = State::kFinished WHERE id = ?", result.attempt);
}

std::vector<RankRecord> read_records(Transaction& work, const TableColumns& columns, i64 attempt) {
  std::vector<RankRecord> out;
  {
    auto rows = work.rows(
        fmt::format(
            "SELECT {} FROM rank_record r WHERE r.attempt = ? AND r.outcome IS NOT NULL ORDER BY r.rank",
            select_list(columns, "rank_record", "r", stored_fields<RankRecord>())),
        attempt);
    while (rows.next()) read_fields(rows, 0, out.emplace_back());
  }
  for (RankRecord& record : out) record.samples = read_samples(work, columns, attempt, record.rank);
  return out;
}

std::vector<RankExit> read_exits(Transaction& work, const TableColumns& columns, i64 attempt) {
  std::vector<RankExit> out;
  auto rows = work.rows(fmt::format(R"(
      SELECT {} FROM rank_record r WHERE r.attempt = ? AND r.killed_by_agent IS NOT NULL ORDER BY r.rank)",
                                    select_list(columns, "rank_record", "r", stored_fields<RankExit>())),
                        attempt);
  while (rows.next()) read_fields(rows, 0, out.emplace_back());
  return out;
}

std::optional<AttemptEnd> read_end(Transaction& work, const TableColumns& columns, i64 attempt) {
  auto rows = work.rows(fmt::format("SELECT {} FROM attempt a WHERE a.id = ? AND a.cause IS NOT NULL",
                                    select_list(columns, "attempt", "a", stored_fields<AttemptEnd>())),
                        attempt);
  if (!rows.next()) return std::nullopt;
  AttemptEnd end;
  read_fields(rows, 0, end);
  return end;
}

std::vector<NodeRecord> read_nodes(Transaction& work, const TableColumns& columns,
                                   std::string_view allocation) {
  std::vector<NodeRecord> out;
  auto rows = work.rows(fmt::format("SELECT {} FROM environment e WHERE e.allocation = ? ORDER BY e.node",
                                    select_list(columns, "environment", "e", stored_fields<NodeRecord>())),
                        allocation);
  while (rows.next()) read_fields(rows, 0, out.emplace_back());
  return out;
}

}  // namespace sweep::store
