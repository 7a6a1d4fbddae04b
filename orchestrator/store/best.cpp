// The best trials of each group. Over model and nodes every group's leaders are the first entries of an
// index; any other grouping or metric reads the ranked results of the sweep once.
#include <fmt/format.h>

#include <algorithm>

#include "orchestrator/store/sqlite_store.h"

namespace sweep::store {
namespace {

Value value_at(const Rows& rows, int column) {
  switch (sqlite3_column_type(rows.handle(), column)) {
    case SQLITE_INTEGER:
      return rows.get<i64>(column);
    case SQLITE_FLOAT:
      return rows.get<double>(column);
    case SQLITE_NULL:
      return std::monostate{};
    default:
      return rows.get<std::string>(column);
  }
}

bool is_ranked(const std::string& metric) {
  return std::ranges::find(ranked_metrics(), metric) != ranked_metrics().end();
}

// A group is the model, an axis, or a label that the grid derived.
std::string group_expression(const std::string& name) {
  if (name == "model") return "p.model";
  if (is_axis(name)) return axis_value_sql(name);
  std::string path = "'$.\"";
  for (const char c : name) path += c == '\'' ? std::string("''") : std::string(1, c);
  return "CASE WHEN p.labels <> '' THEN json_extract(p.labels, " + path + "\"') END";
}

template <class Ranked>
void keep_best(std::vector<Ranked>& leaders, Ranked next, bool larger, i64 limit) {
  const auto before = [larger](const Ranked& a, const Ranked& b) {
    if (a.value != b.value) return larger ? a.value > b.value : a.value < b.value;
    return a.attempt < b.attempt;
  };
  const bool full = leaders.size() >= static_cast<std::size_t>(limit);
  if (full && !before(next, leaders.back())) return;
  leaders.insert(std::upper_bound(leaders.begin(), leaders.end(), next, before), next);
  if (full) leaders.pop_back();
}

}  // namespace

SqliteStore::Leaders SqliteStore::leaders_by_index(Transaction& work, i64 sweep,
                                                   std::span<const std::string> group_by,
                                                   const std::string& metric, bool larger, i64 limit) {
  struct Group {
    i64 id;
    std::vector<Value> key;
  };
  std::vector<Group> groups;
  {
    auto rows = work.rows("SELECT id, model, nodes FROM ranking_group WHERE sweep = ?", sweep);
    while (rows.next()) {
      Group group{rows.get<i64>(0), {}};
      for (const auto& name : group_by) group.key.push_back(value_at(rows, name == "model" ? 1 : 2));
      groups.push_back(std::move(group));
    }
  }
  const std::string sql = fmt::format(
      "SELECT attempt, {0} FROM result WHERE ranking = ? AND {0} IS NOT NULL ORDER BY {0} {1} LIMIT ?",
      sql_name(metric), larger ? "DESC" : "ASC");
  Leaders leaders;
  for (const auto& group : groups) {
    auto rows = work.rows(sql, group.id, limit);
    while (rows.next())
      keep_best(leaders[group.key], Ranked{rows.get<i64>(0), rows.get<double>(1)}, larger, limit);
  }
  return leaders;
}

SqliteStore::Leaders SqliteStore::leaders_by_scan(Transaction& work, i64 sweep,
                                                  std::span<const std::string> group_by,
                                                  const std::string& metric, bool larger, i64 limit) {
  std::string sql = fmt::format("SELECT r.attempt, r.{}", sql_name(metric));
  for (const auto& name : group_by) sql += ", " + group_expression(name);
  sql += fmt::format(
      " FROM plan_entry p JOIN trial t ON t.key = p.trial JOIN result r ON r.attempt = p.final_attempt WHERE "
      "p.sweep = ? "
      "AND r.ranking IS NOT NULL AND r.{} IS NOT NULL",
      sql_name(metric));
  Leaders leaders;
  auto rows = work.rows(sql, sweep);
  std::vector<Value> key(group_by.size());
  while (rows.next()) {
    for (std::size_t i = 0; i < key.size(); ++i) key[i] = value_at(rows, 2 + static_cast<int>(i));
    keep_best(leaders[key], Ranked{rows.get<i64>(0), rows.get<double>(1)}, larger, limit);
  }
  return leaders;
}

Expected<std::vector<ResultRow>> SqliteStore::best(i64 sweep, std::span<const std::string> group_by,
                                                   const std::string& metric, bool larger, i64 limit) {
  if (!is_metric(metric)) {
    std::string list;
    for (const auto& column : metric_columns()) list += (list.empty() ? "" : ", ") + column.name;
    return fail(fmt::format("'{}' is no metric; the metrics are: {}", metric, list));
  }
  limit = std::max<i64>(limit, 1);
  const bool indexed = is_ranked(metric) && std::ranges::all_of(group_by, [](const std::string& name) {
                         return name == "model" || name == "nodes";
                       });
  Transaction work(*db_, Transaction::kRead);
  const Leaders leaders = indexed ? leaders_by_index(work, sweep, group_by, metric, larger, limit)
                                  : leaders_by_scan(work, sweep, group_by, metric, larger, limit);
  std::vector<ResultRow> out;
  for (const auto& [key, ranked] : leaders)
    for (const Ranked& each : ranked)
      for (auto& row : result_rows(work, "p.key = (SELECT entry FROM attempt WHERE id = ?)", {each.attempt}))
        out.push_back(std::move(row));
  return work.commit(std::move(out));
}

}  // namespace sweep::store
