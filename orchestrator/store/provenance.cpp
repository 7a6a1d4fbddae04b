// Where results were measured: nodes of allocations, and what rank 0 said it really used.
#include <map>

#include "orchestrator/store/sqlite_store.h"

namespace sweep::store {
namespace {

constexpr const char* kNodes =
    "SELECT a.id, a.launcher, a.whereabouts, e.node, e.host, e.facts, a.created_unix_ns FROM allocation a "
    "LEFT "
    "JOIN environment e ON e.allocation = a.id WHERE ";

Environment read_environment(const Rows& rows) {
  Environment out;
  rows.read(0, out.allocation), rows.read(1, out.launcher), rows.read(2, out.whereabouts),
      rows.read(3, out.node);
  rows.read(4, out.host), rows.read(5, out.facts), rows.read(6, out.created_unix_ns);
  return out;
}

}  // namespace

Expected<std::vector<Environment>> SqliteStore::environments(i64 sweep) {
  Transaction work(*db_, Transaction::kRead);
  std::map<std::string, i64> results;
  {
    auto rows = work.rows(
        "SELECT t.allocation, count(*) FROM plan_entry p JOIN attempt t ON t.id = p.final_attempt WHERE "
        "p.sweep = ? "
        "AND p.state <> State::kRetired GROUP BY t.allocation",
        sweep);
    while (rows.next()) results.emplace(rows.get<std::string>(0), rows.get<i64>(1));
  }
  std::vector<Environment> out;
  {
    auto rows =
        work.rows(std::string(kNodes) + "a.sweep = ? ORDER BY a.created_unix_ns, a.id, e.node", sweep);
    while (rows.next()) {
      Environment node = read_environment(rows);
      const auto held = results.find(node.allocation);
      if (held == results.end()) continue;
      node.results = held->second;
      out.push_back(std::move(node));
    }
  }
  return work.commit(std::move(out));
}

Expected<std::vector<Provenance>> SqliteStore::provenance(i64 sweep, std::span<const std::string> trial_ids) {
  Transaction work(*db_, Transaction::kRead);
  std::vector<Provenance> out;
  for (const std::string& id : trial_ids) {
    Provenance found;
    std::string allocation;
    {
      auto rows = work.rows(
          "SELECT a.allocation, r.effective FROM trial t JOIN plan_entry p ON p.trial = t.key AND p.sweep = "
          "? JOIN "
          "attempt a ON a.id = p.final_attempt LEFT JOIN rank_record r ON r.attempt = a.id AND r.rank = 0 "
          "WHERE t.id = "
          "?",
          sweep, id);
      if (!rows.next()) continue;
      rows.read(0, allocation), rows.read(1, found.effective);
    }
    found.trial_id = id;
    auto rows = work.rows(std::string(kNodes) + "a.id = ? ORDER BY e.node", allocation);
    while (rows.next()) found.nodes.push_back(read_environment(rows));
    if (!found.nodes.empty()) found.launcher = found.nodes.front().launcher;
    out.push_back(std::move(found));
  }
  return work.commit(std::move(out));
}

}  // namespace sweep::store
