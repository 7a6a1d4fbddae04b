// Applying a stretch of an outbox, or a verdict without records, in one transaction.
#include <fmt/format.h>

#include <limits>
#include <set>
#include <unordered_map>

#include "base/fail.h"
#include "orchestrator/store/rows.h"
#include "orchestrator/store/settle.h"
#include "orchestrator/store/store_file.h"
#include "orchestrator/store/sweep_rows.h"

namespace sweep::store {
namespace {

// The attempts that an allocation may report on, and how many ranks they have.
class Known {
 public:
  Known(Transaction& work, const std::string& allocation) : work_(work), allocation_(allocation) {}

  bool attempt(i64 id) { return found(id).world > 0; }
  bool rank(i64 id, i64 rank) { return rank >= 0 && rank < found(id).world; }
  i64 entry(i64 id) { return found(id).entry; }
  void stray(std::string_view what, i64 attempt) {
    strays_.insert(fmt::format("{} of attempt {}", what, attempt));
  }
  const std::set<std::string>& strays() const { return strays_; }

 private:
  struct Facts {
    i64 world = 0, entry = 0;  // world 0: not this allocation's
  };
  const Facts& found(i64 id) {
    const auto it = facts_.find(id);
    if (it != facts_.end()) return it->second;
    Facts facts;
    {
      auto rows =
          work_.rows("SELECT world, entry FROM attempt WHERE id = ? AND allocation = ?", id, allocation_);
      if (rows.next()) facts = {rows.get<i64>(0), rows.get<i64>(1)};
    }
    return facts_[id] = facts;
  }
  Transaction& work_;
  const std::string& allocation_;
  std::unordered_map<i64, Facts> facts_;
  std::set<std::string> strays_;
};

// While it lives, commits are not synced. After a power cut the file is as it was before them, read offset
// included, and the outbox, which its writer syncs, is read again; any other commit syncs the log with what
// was written there before. Without a log (network filesystems) every commit is synced as ever.
class Unsynced {
 public:
  Unsynced(Db& db, bool as_ever) : db_(as_ever ? nullptr : &db) { set("NORMAL"); }
  ~Unsynced() { set("FULL"); }
  Unsynced(const Unsynced&) = delete;
  Unsynced& operator=(const Unsynced&) = delete;

 private:
  void set(const char* level) {
    if (db_)
      sqlite3_exec(db_->handle(), fmt::format("PRAGMA synchronous = {}", level).c_str(), nullptr, nullptr,
                   nullptr);
  }
  Db* db_;
};

// 1 at most is told: a damaged or foreign spool must not fill the database with complaints.
void note_strays(Transaction& work, i64 sweep, i64 now, const std::string& allocation, const Known& known) {
  if (known.strays().empty()) return;
  add_event_row(
      work, sweep, now, EventKind::kStrayRecords,
      fmt::format("allocation {}: {} record(s) left out that belong to no rank of its attempts; first: {}",
                  allocation, known.strays().size(), *known.strays().begin()));
}

void apply(Transaction& work, const IngestBatch& batch, Known& known) {
  for (const auto& node : batch.nodes) write_node(work, batch.allocation, node);
  for (const auto& [attempt, unix_ns] : batch.started)
    known.attempt(attempt) ? write_started(work, attempt, unix_ns) : known.stray("start", attempt);
  for (const auto& record : batch.rank_records)
    known.rank(record.attempt, record.rank) ? write_record(work, record)
                                            : known.stray("rank record", record.attempt);
  for (const auto& exit : batch.rank_exits)
    known.rank(exit.attempt, exit.rank) ? write_exit(work, exit) : known.stray("rank exit", exit.attempt);
  for (const auto& end : batch.ends)
    known.attempt(end.attempt) ? write_end(work, end) : known.stray("end", end.attempt);
}

}  // namespace

Expected<void> Reports::ingest(const IngestBatch& batch) {
  if (batch.new_offset > static_cast<std::uint64_t>(std::numeric_limits<i64>::max()))
    return fail("allocation '{}': the outbox offset {} is out of range", batch.allocation, batch.new_offset);
  const auto offset = static_cast<i64>(batch.new_offset);
  const Unsynced unsynced(*file_.db, file_.network || !file_.dependencies.durable);
  Transaction work(*file_.db, Transaction::kWrite);
  const auto sweep = sweep_of_allocation(work, batch.allocation);
  if (!sweep) return work.commit();
  file_.leases.guard(work, *sweep);
  work.run("UPDATE allocation SET read_offset = ?1 WHERE id = ?2 AND read_offset < ?1", offset,
           batch.allocation);
  if (work.failed() || work.changes() == 0) return work.commit();
  Known known(work, batch.allocation);
  apply(work, batch, known);
  const SweepRules rules = rules_of(work, *sweep, file_.dependencies.decide_trial);
  for (const auto& result : batch.results) {
    if (!known.attempt(result.attempt)) {
      known.stray("result", result.attempt);
      continue;
    }
    write_result(work, result);
    settle(work, known.entry(result.attempt), rules);
  }
  note_strays(work, *sweep, file_.leases.now(), batch.allocation, known);
  pack(work, file_.selects, file_.dependencies.most_unpacked);
  return work.commit();
}

Expected<void> Reports::finish_attempt(const Result& result) {
  Transaction work(*file_.db, Transaction::kWrite);
  i64 sweep = 0, entry = 0;
  {
    auto rows = work.rows(R"(
        SELECT p.sweep, p.key FROM attempt a JOIN plan_entry p ON p.key = a.entry WHERE a.id = ?)",
                          result.attempt);
    if (rows.next()) {
      sweep = rows.get<i64>(0);
      entry = rows.get<i64>(1);
    } else {
      work.refuse(
          fmt::format("database '{}' knows no attempt {}", file_.db->path().string(), result.attempt));
    }
  }
  file_.leases.guard(work, sweep);
  const auto before = work.one<Outcome>("SELECT outcome FROM result WHERE attempt = ?", result.attempt);
  if (before && !is_infrastructure(*before)) return work.commit();
  write_result(work, result);
  work.run("UPDATE attempt SET ended_unix_ns = COALESCE(ended_unix_ns, ?) WHERE id = ?",
           result.finished_unix_ns, result.attempt);
  settle(work, entry, rules_of(work, sweep, file_.dependencies.decide_trial));
  pack(work, file_.selects, file_.dependencies.most_unpacked);
  return work.commit();
}

Expected<StoredRecords> Reports::records_of(i64 attempt) {
  Transaction work(*file_.db, Transaction::kRead);
  StoredRecords out{read_records(work, file_.selects.columns, attempt),
                    read_exits(work, file_.selects.columns, attempt),
                    read_end(work, file_.selects.columns, attempt)};
  return work.commit(std::move(out));
}

Expected<std::vector<NodeRecord>> Reports::nodes_of(const std::string& allocation) {
  Transaction work(*file_.db, Transaction::kRead);
  auto nodes = read_nodes(work, file_.selects.columns, allocation);
  return work.commit(std::move(nodes));
}

Expected<std::vector<NodeRecord>> Reports::nodes_seen() {
  Transaction work(*file_.db, Transaction::kRead);
  std::vector<NodeRecord> out;
  {
    auto rows = work.rows("SELECT node, host, facts FROM environment GROUP BY node ORDER BY node");
    while (rows.next()) {
      NodeRecord& node = out.emplace_back();
      rows.read(0, node.node);
      rows.read(1, node.host);
      read_value(rows, 2, node.facts);
    }
  }
  return work.commit(std::move(out));
}

Expected<i64> Reports::results_in(const std::string& allocation) {
  Transaction work(*file_.db, Transaction::kRead);
  const auto count = work.one<i64>(
      "SELECT count(*) FROM attempt a JOIN result r ON r.attempt = a.id WHERE a.allocation = ?", allocation);
  return work.commit(count.value_or(0));
}

}  // namespace sweep::store
