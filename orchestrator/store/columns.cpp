#include "orchestrator/store/columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <type_traits>

#include "base/expected.h"
#include "orchestrator/store/enumerators.h"
#include "orchestrator/store/stored_rows.h"
#include "schema/axis_domain.h"
#include "schema/rehearsal.h"

namespace sweep::store {
namespace {

std::string text_literal(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

Column column_of(std::string_view key, i64 v) {
  const std::string_view may_be_null = zero_is_unresolved(key) ? "" : " NOT NULL";
  return {std::string(key), fmt::format("INTEGER{} DEFAULT {}", may_be_null, v), std::to_string(v)};
}
Column column_of(std::string_view key, bool v) {
  return {std::string(key), fmt::format("INTEGER NOT NULL DEFAULT {:d}", v), fmt::format("{:d}", v)};
}
[[maybe_unused]] Column column_of(std::string_view key, double v) {
  return {std::string(key), fmt::format("REAL NOT NULL DEFAULT {:#}", v), fmt::format("{:#}", v)};
}
Column column_of(std::string_view key, const std::string& v) {
  return {std::string(key), "TEXT NOT NULL DEFAULT " + text_literal(v), text_literal(v)};
}
Column column_of(std::string_view key, const std::optional<i64>& v) {
  if (v) return {std::string(key), fmt::format("INTEGER DEFAULT {}", *v), std::to_string(*v)};
  return {std::string(key), "INTEGER", "NULL"};
}
template <AxisChoice Enum>
Column column_of(std::string_view key, Enum v) {
  return column_of(key, std::string(to_string(v)));
}

const char* type_of(const std::optional<i64>*) {
  return "INTEGER";
}
[[maybe_unused]] const char* type_of(const std::optional<bool>*) {
  return "INTEGER";
}
const char* type_of(const std::optional<double>*) {
  return "REAL";
}
const char* type_of(const std::optional<std::string>*) {
  return "TEXT";
}

std::vector<Column> make_axis_columns() {
  std::vector<Column> out;
  const Trial trial;
  for_each_axis(trial, [&](const FieldInfo& info, const auto& frozen, const auto&) {
    out.push_back(column_of(info.key, frozen));
  });
  return out;
}

std::vector<Column> make_metric_columns() {
  std::vector<Column> out;
  const Metrics metrics;
  for_each_metric(metrics, [&](const FieldInfo& info, const auto& member) {
    out.push_back({std::string(info.key), type_of(&member), "NULL"});
  });
  return out;
}

std::string select_list(const std::vector<Column>& columns, char alias,
                        const std::set<std::string>& present) {
  std::string out;
  for (const auto& column : columns) {
    if (!out.empty()) out += ", ";
    out += present.contains(column.name) ? fmt::format("{}.{}", alias, sql_name(column.name)) : column.absent;
  }
  return out;
}

std::string names(const std::vector<Column>& columns) {
  std::string out;
  for (const auto& column : columns) out += ", " + sql_name(column.name);
  return out;
}

// CASE that turns the numbers of an enumeration into its names.
template <class E>
std::string case_of(std::string_view enumeration, std::string_view expression) {
  std::string out = fmt::format("CASE {}", expression);
  for (const Enumerator& each : enumerators())
    if (each.name.starts_with(enumeration))
      out += fmt::format(" WHEN {} THEN '{}'", each.name, to_string(static_cast<E>(each.number)));
  return out + " END";
}

// A prediction is known before, or without, any result.
std::string metric_expression(const std::string& name) {
  if (name == "predicted_bytes")
    return "COALESCE(r.\"predicted_bytes\", p.predicted_bytes) AS \"predicted_bytes\"";
  if (name == "predicted_ms") return "COALESCE(r.\"predicted_ms\", p.predicted_step_ms) AS \"predicted_ms\"";
  return "r." + sql_name(name);
}

// NULL where the program of a workload knows no such axis (schema/labels.h).
std::string known_value(const std::string& value, std::string_view key) {
  static constexpr std::string_view kAlways[] = {"workload", "program", "hardware", "nodes", "gpus_per_node",
                                                 "dp",       "tp",      "pp",       "cp",    "ep"};
  if (std::ranges::find(kAlways, key) != std::end(kAlways)) return value;
  // No JSON function: SQLite 3.40 takes them for unsafe in a view.
  return fmt::format(
      R"(CASE WHEN substr(p.labels, 1, 10) <> '{{"@axes":"' OR instr(substr(p.labels, 11, instr(substr(p.labels, 11), '"')), ' {} ') THEN {} END)",
      key, value);
}

std::string axis_in_view(const Column& axis) {
  const std::string column = "t." + sql_name(axis.name);
  const std::string value = known_value(column, axis.name);
  return value == column ? value : value + " AS " + sql_name(axis.name);
}

std::string results_view() {
  std::string axes, metrics;
  for (const auto& axis : axis_columns()) axes += ", " + axis_in_view(axis);
  for (const auto& metric : metric_columns()) metrics += ", " + metric_expression(metric.name);
  return with_numbers(fmt::format(R"(CREATE VIEW results AS
SELECT s.name AS sweep, t.id AS trial,
       substr(s.name, -{suffix_size}) = '{suffix}' AS rehearsed,
       {outcome} AS outcome, {state} AS state,
       NULLIF(CASE WHEN p.final_attempt IS NULL THEN p.reason ELSE r.reason END, '') AS reason,
       p.model AS model{axes}{metrics},
       p.attempts AS attempts,
       strftime('%Y-%m-%dT%H:%M:%S', r.finished_unix_ns / 1000000000, 'unixepoch')
         || printf('.%03dZ', r.finished_unix_ns / 1000000 % 1000) AS finished_at,
       {oom_kind} AS oom_kind, NULLIF(r.phase, '') AS phase, r.rank AS cause_rank,
       NULLIF(p.rule, '') AS rule, NULLIF(p.labels, '') AS labels, t.spec AS model_spec
FROM plan_entry p
JOIN sweep s ON s.id = p.sweep
JOIN trial t ON t.key = p.trial
LEFT JOIN result r ON r.attempt = p.final_attempt
WHERE p.state <> State::kRetired)",
                                  fmt::arg("suffix_size", kRehearsalSuffix.size()),
                                  fmt::arg("suffix", kRehearsalSuffix), fmt::arg("axes", axes),
                                  fmt::arg("metrics", metrics),
                                  fmt::arg("outcome", case_of<Outcome>("Outcome::", "p.outcome")),
                                  fmt::arg("state", case_of<State>("State::", "p.state")),
                                  fmt::arg("oom_kind", case_of<OomKind>("OomKind::", "r.oom_kind"))));
}

bool add_columns(Transaction& work, const char* table, const std::vector<Column>& wanted) {
  const auto present = columns_in(work, table);
  bool added = false;
  for (const auto& column : wanted) {
    if (present.contains(column.name)) continue;
    work.run(
        fmt::format("ALTER TABLE {} ADD COLUMN {} {}", table, sql_name(column.name), column.declaration));
    added = true;
  }
  return added;
}

using RecordTable = std::pair<const char*, std::vector<Column>>;

template <class Record>
void add_table(std::vector<RecordTable>& out, const char* table) {
  auto& columns = out.emplace_back(table, std::vector<Column>{}).second;
  for (const auto& field : stored_fields<Record>()) columns.push_back({field.column, field.type, "NULL"});
}

// The tables of the records (schema/records.def, stored_rows.h), with the columns of each record.
const std::vector<RecordTable>& record_tables() {
  static const std::vector<RecordTable> tables = [] {
    std::vector<RecordTable> out;
    add_table<RankRecord>(out, "rank_record");
    add_table<RankExit>(out, "rank_record");
    add_table<StepSample>(out, "step_sample");
    add_table<AttemptEnd>(out, "attempt");
    add_table<NodeRecord>(out, "environment");
    add_table<Result>(out, "result");
    add_table<SweepRow>(out, "sweep");
    add_table<PlanEntry>(out, "plan_entry");
    add_table<StoredAllocation>(out, "allocation");
    add_table<LeaseHolder>(out, "lease");
    return out;
  }();
  return tables;
}

}  // namespace

const std::vector<Column>& axis_columns() {
  static const std::vector<Column> columns = make_axis_columns();
  return columns;
}

const std::vector<Column>& metric_columns() {
  static const std::vector<Column> columns = make_metric_columns();
  return columns;
}

std::string sql_name(std::string_view identifier) {
  std::string out = "\"";
  for (const char c : identifier) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

Selects selects_for(Transaction& work) {
  TableColumns columns;
  for (const auto& [table, fields] : record_tables()) columns.emplace(table, columns_in(work, table));
  return {select_list(axis_columns(), 't', columns_in(work, "trial")),
          select_list(metric_columns(), 'r', columns_in(work, "result")), std::move(columns)};
}

std::string with_columns(std::string sql) {
  const std::pair<std::string_view, const std::vector<Column>&> tables[] = {{"trial", axis_columns()},
                                                                            {"result", metric_columns()}};
  for (const auto& [table, columns] : tables) {
    const std::size_t begin = sql.find(fmt::format("CREATE TABLE {} (", table));
    const std::size_t end = begin == std::string::npos ? begin : sql.find("\n)", begin);
    if (end == std::string::npos) continue;
    std::string text;
    for (const Column& column : columns)
      text += fmt::format("\n, {} {}", sql_name(column.name), column.declaration);
    sql.insert(end, text);
  }
  return sql;
}

void complete_columns(Transaction& work) {
  bool added = add_columns(work, "trial", axis_columns());
  added |= add_columns(work, "result", metric_columns());
  for (const auto& [table, fields] : record_tables()) add_columns(work, table, fields);
  const auto present =
      work.one<std::string>("SELECT sql FROM sqlite_schema WHERE type = 'view' AND name = 'results'");
  const auto wanted = results_view();  // a file of another version may have another one
  if (present == wanted && !added) return;
  work.run("DROP VIEW IF EXISTS results");
  work.run(wanted);
}

const std::string& insert_trial_sql() {
  static const std::string sql =
      fmt::format("INSERT INTO trial(id, spec{}) VALUES ({}) ON CONFLICT(id) DO NOTHING",
                  names(axis_columns()), marks(2 + axis_columns().size()));
  return sql;
}

const std::vector<StoredField>& result_fields() {
  static const std::vector<StoredField> fields = [] {
    auto out = stored_fields<Result>();
    const Metrics metrics;
    for_each_metric(metrics, [&](const FieldInfo& info, const auto& member) {
      out.push_back({sql_name(info.key), sql_type<decltype(member)>(), false});
    });
    return out;
  }();
  return fields;
}

void put_axes(Statement& statement, int first, const Trial& trial) {
  for_each_axis(trial, [&](const FieldInfo& info, const auto&, const auto& member) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(member)>, i64>) {
      if (member == 0 && zero_is_unresolved(info.key)) return statement.put(first++, nullptr);
    }
    if constexpr (AxisChoice<std::remove_cvref_t<decltype(member)>>)
      statement.put(first++, to_string(member));
    else
      statement.put(first++, member);
  });
}

void put_metrics(Statement& statement, int first, const Metrics& metrics) {
  for_each_metric(metrics, [&](const FieldInfo&, const auto& member) { statement.put(first++, member); });
}

int read_axes(const Rows& rows, int column, Trial& trial) {
  for_each_axis(trial, [&](const FieldInfo& info, const auto&, auto& member) {
    using T = std::remove_cvref_t<decltype(member)>;
    if constexpr (AxisChoice<T>) {
      const std::string_view word = rows.text(column++);
      const auto choice = choice_from<T>(word);
      if (!choice)
        return rows.refuse(Error{
            fmt::format("{} is '{}' in the database, and this version knows {}; a later version wrote it",
                        info.key, word, fmt::join(ChoiceWords<T>::kWords, ", ")),
            ErrorKind::kUnsupported, std::string(word)});
      member = *choice;
    } else {
      rows.read(column++, member);
    }
  });
  return column;
}

int read_metrics(const Rows& rows, int column, Metrics& metrics) {
  for_each_metric(metrics, [&](const FieldInfo&, auto& member) { rows.read(column++, member); });
  return column;
}

}  // namespace sweep::store
