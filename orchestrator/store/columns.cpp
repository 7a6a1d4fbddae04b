#include "orchestrator/store/columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <type_traits>

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
  return column_of(key, std::string(stored_word(v)));
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
    out.push_back(column_of(info.stored, frozen));
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

std::set<std::string> columns_in(Transaction& work, std::string_view table) {
  std::set<std::string> out;
  auto rows = work.rows("SELECT name FROM pragma_table_info(?)", table);
  while (rows.next()) out.insert(rows.get<std::string>(0));
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

std::string marks(std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += i ? ", ?" : "?";
  return out;
}

std::string case_of_outcomes(const char* expression) {
  std::string out = fmt::format("CASE {}", expression);
  for (int i = 0; i <= static_cast<int>(Outcome::kFailedUnknown); ++i)
    out += fmt::format(" WHEN {} THEN '{}'", i, to_string(static_cast<Outcome>(i)));
  return out + " END";
}

std::string case_of_states(const std::string& expression) {
  std::string out = fmt::format("CASE {}", expression);
  for (int i = 0; i <= static_cast<int>(State::kRetired); ++i)
    out += fmt::format(" WHEN {} THEN '{}'", i, to_string(static_cast<State>(i)));
  return out + " END";
}

// A prediction is known before, or without, any result.
std::string metric_expression(const std::string& name) {
  if (name == "predicted_bytes")
    return "COALESCE(r.\"predicted_bytes\", p.predicted_bytes) AS \"predicted_bytes\"";
  if (name == "predicted_ms") return "COALESCE(r.\"predicted_ms\", p.predicted_step_ms) AS \"predicted_ms\"";
  return "r." + sql_name(name);
}

std::string axis_in_view(const Column& axis) {
  const std::string value = axis_value_sql(axis.name);
  const std::string_view key = current_key(axis.name);
  return value == "t." + sql_name(key) ? value : value + " AS " + sql_name(key);
}

std::string results_view() {
  std::string sql = "CREATE VIEW results AS SELECT s.name AS sweep, t.id AS trial, " +
                    fmt::format("substr(s.name, -{}) = '{}'", kRehearsalSuffix.size(), kRehearsalSuffix) +
                    " AS rehearsed, " + case_of_outcomes("p.outcome") + " AS outcome, " +
                    case_of_states("p.state") +
                    " AS state, NULLIF(CASE WHEN p.final_attempt IS NULL THEN p.reason ELSE r.reason END, "
                    "'') AS reason, p.model AS model";
  for (const auto& axis : axis_columns()) sql += ", " + axis_in_view(axis);
  for (const auto& metric : metric_columns()) sql += ", " + metric_expression(metric.name);
  sql +=
      ", p.attempts AS attempts, strftime('%Y-%m-%dT%H:%M:%SZ', r.finished_unix_ns / 1000000000, "
      "'unixepoch') AS finished_at"
      ", CASE r.oom_kind WHEN 0 THEN 'device' WHEN 1 THEN 'host' END AS oom_kind, NULLIF(r.phase, '') AS "
      "phase"
      ", r.rank AS cause_rank, NULLIF(p.rule, '') AS rule, NULLIF(p.labels, '') AS labels, t.spec AS "
      "model_spec";
  // At the end: queries of people may still use the names that axes had.
  for (const RenamedAxis& axis : kRenamedAxes) sql += ", t." + sql_name(axis.stored);
  sql +=
      " FROM plan_entry p JOIN sweep s ON s.id = p.sweep JOIN trial t ON t.key = p.trial"
      " LEFT JOIN result r ON r.attempt = p.final_attempt WHERE p.state <> 4";
  return sql;
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

// Files of versions before unresolved axes were NULL hold 0 there, in columns that refuse NULL. Such a column is made
// anew. The trigger that marks packed rows as out of date is off meanwhile: it is asked for the changed rows alone.
bool let_unresolved_be_null(Transaction& work) {
  std::vector<const Column*> strict;
  for (const auto& column : axis_columns()) {
    const auto refuses =
        work.one<i64>("SELECT \"notnull\" FROM pragma_table_info('trial') WHERE name = ?", column.name);
    if (refuses == 1 && zero_is_unresolved(column.name)) strict.push_back(&column);
  }
  if (strict.empty()) return false;
  constexpr std::string_view kTrigger = "loose_trial_changed";
  const auto trigger = work.one<std::string>("SELECT sql FROM sqlite_schema WHERE name = ?", kTrigger);
  work.run("DROP VIEW IF EXISTS results");
  work.run("DROP TRIGGER IF EXISTS loose_trial_changed");
  for (const Column* column : strict) {
    const std::string name = sql_name(column->name), old = sql_name(column->name + " before");
    work.run(fmt::format("ALTER TABLE trial RENAME COLUMN {} TO {}", name, old));
    work.run(fmt::format("ALTER TABLE trial ADD COLUMN {} {}", name, column->declaration));
    work.run(
        fmt::format("UPDATE trial SET {0} = NULLIF({1}, 0) WHERE {1} <> {2}", name, old, column->absent));
    work.run(fmt::format("ALTER TABLE trial DROP COLUMN {}", old));
  }
  if (trigger) work.run(*trigger);
  for (const Column* column : strict)
    work.run(fmt::format("UPDATE trial SET {0} = NULL WHERE {0} IS NULL", sql_name(column->name)));
  return true;
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

const std::vector<std::string>& ranked_metrics() {
  static const std::vector<std::string> names{"step_ms", "tokens_per_s", "tokens_per_s_gpu", "tflops_gpu",
                                              "mfu",     "mt_per_hour",  "cost_per_mt"};
  return names;
}

bool is_axis(std::string_view name) {
  return std::ranges::any_of(axis_columns(), [&](const Column& c) { return c.name == stored_key(name); });
}

bool is_metric(std::string_view name) {
  return std::ranges::any_of(metric_columns(), [&](const Column& c) { return c.name == name; });
}

std::string sql_name(std::string_view identifier) {
  std::string out = "\"";
  for (const char c : identifier) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string axis_value_sql(std::string_view name) {
  const std::string_view key = current_key(name);
  const std::string column = "t." + sql_name(stored_key(key));
  std::string words;
  for (const RenamedWord& word : kRenamedWords)
    if (word.key == key)
      words += fmt::format(" WHEN {} THEN {}", text_literal(word.stored), text_literal(word.word));
  return words.empty() ? column : fmt::format("CASE {0}{1} ELSE {0} END", column, words);
}

Selects selects_for(Transaction& work) {
  return {select_list(axis_columns(), 't', columns_in(work, "trial")),
          select_list(metric_columns(), 'r', columns_in(work, "result"))};
}

void complete_columns(Transaction& work) {
  bool added = let_unresolved_be_null(work);
  added |= add_columns(work, "trial", axis_columns());
  added |= add_columns(work, "result", metric_columns());
  for (const auto& metric : ranked_metrics())
    work.run(fmt::format("CREATE INDEX IF NOT EXISTS {0} ON result(ranking, {1}) WHERE ranking IS NOT NULL",
                         sql_name("result_by_" + metric), sql_name(metric)));
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

const std::string& insert_result_sql() {
  static const std::string sql = fmt::format(
      "INSERT OR REPLACE INTO result(attempt, outcome, oom_kind, reason, rank, phase, evidence, "
      "finished_unix_ns{}) VALUES ({})",
      names(metric_columns()), marks(8 + metric_columns().size()));
  return sql;
}

void put_axes(Statement& statement, int first, const Trial& trial) {
  for_each_axis(trial, [&](const FieldInfo& info, const auto&, const auto& member) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(member)>, i64>) {
      if (member == 0 && zero_is_unresolved(info.key)) return statement.put(first++, nullptr);
    }
    if constexpr (AxisChoice<std::remove_cvref_t<decltype(member)>>)
      statement.put(first++, stored_word(member));
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
        return rows.refuse(
            fmt::format("{} is '{}' in the database, and this version knows {}; a later version wrote it",
                        info.key, word, fmt::join(ChoiceWords<T>::kWords, ", ")));
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
