// Reads where results were measured: nodes of allocations, and what rank 0 really used.
#include <fmt/format.h>

#include <map>

#include "orchestrator/store/store_file.h"

namespace sweep::store {
namespace {

// Allocations with their nodes, as read_environment() takes them; `rest` begins with a condition.
std::string select_nodes(const Selects& selects, std::string_view rest) {
  return fmt::format(R"(
      SELECT a.id, a.launcher, a.whereabouts, a.created_unix_ns, {}
      FROM allocation a LEFT JOIN environment e ON e.allocation = a.id
      WHERE {})",
                     select_list(selects.columns, "environment", "e", stored_fields<NodeRecord>()), rest);
}

Environment read_environment(const Rows& rows) {
  Environment out;
  rows.read(0, out.allocation);
  rows.read(1, out.launcher);
  rows.read(2, out.whereabouts);
  rows.read(3, out.created_unix_ns);
  NodeRecord node;
  read_fields(rows, 4, node);
  out.node = node.node;
  out.host = std::move(node.host);
  out.facts = std::move(node.facts);
  return out;
}

}  // namespace

Expected<std::vector<Environment>> Answers::environments(i64 sweep) {
  Transaction work(*file_.db, Transaction::kRead);
  std::map<std::string, i64> results;
  {
    auto rows = work.rows(R"(
        SELECT t.allocation, count(*) FROM plan_entry p JOIN attempt t ON t.id = p.final_attempt
        WHERE p.sweep = ? AND p.state <> State::kRetired
        GROUP BY t.allocation)",
                          sweep);
    while (rows.next()) results.emplace(rows.get<std::string>(0), rows.get<i64>(1));
  }
  std::vector<Environment> out;
  {
    auto rows =
        work.rows(select_nodes(file_.selects, "a.sweep = ? ORDER BY a.created_unix_ns, a.id, e.node"), sweep);
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

Expected<std::vector<Provenance>> Answers::provenance(i64 sweep, std::span<const std::string> trial_ids) {
  Transaction work(*file_.db, Transaction::kRead);
  std::vector<Provenance> out;
  for (const std::string& id : trial_ids) {
    Provenance found;
    std::string allocation;
    {
      auto rows = work.rows(R"(
          SELECT a.allocation, r.effective FROM trial t
          JOIN plan_entry p ON p.trial = t.key AND p.sweep = ?
          JOIN attempt a ON a.id = p.final_attempt
          LEFT JOIN rank_record r ON r.attempt = a.id AND r.rank = 0
          WHERE t.id = ?)",
                            sweep, id);
      if (!rows.next()) continue;
      rows.read(0, allocation);
      read_value(rows, 1, found.effective);
    }
    found.trial_id = id;
    auto rows = work.rows(select_nodes(file_.selects, "a.id = ? ORDER BY e.node"), allocation);
    while (rows.next()) found.nodes.push_back(read_environment(rows));
    if (!found.nodes.empty()) found.launcher = found.nodes.front().launcher;
    out.push_back(std::move(found));
  }
  return work.commit(std::move(out));
}

}  // namespace sweep::store
