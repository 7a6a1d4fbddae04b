// Derives SQL from the list of a record's fields (schema/records.def, stored_rows.h): lists of columns,
// statements, binding and reading, all in the order of the list.
#pragma once
#include <cmath>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "orchestrator/store/db.h"
#include "schema/codec.h"
#include "schema/record_field.h"
#include "schema/records.h"
#include "schema/sweep_options.h"

namespace sweep::store {

struct StoredField {
  std::string column;
  const char* type;  // its type in SQLite's strict tables
  bool zero_keeps;
};

// The columns that each table of an open database has. A file of an earlier version that is only read may
// lack some.
using TableColumns = std::map<std::string, std::set<std::string>, std::less<>>;

std::set<std::string> columns_in(Transaction&, std::string_view table);

template <class T>
constexpr const char* sql_type() {
  using V = std::remove_cvref_t<T>;
  if constexpr (requires(V v) { v.reset(); })
    return sql_type<typename V::value_type>();
  else if constexpr (std::is_same_v<V, double>)
    return "REAL";
  else if constexpr (std::is_integral_v<V> || std::is_same_v<V, Outcome> || std::is_same_v<V, OomKind> ||
                     std::is_same_v<V, State>)
    return "INTEGER";
  else
    return "TEXT";
}

template <class Record>
const std::vector<StoredField>& stored_fields() {
  static const std::vector<StoredField> fields = [] {
    std::vector<StoredField> out;
    const Record record{};
    for_each_field(record, [&](const auto& field, const auto& member) {
      if constexpr (std::remove_cvref_t<decltype(field)>::kIsStored)
        out.push_back({field.column, sql_type<decltype(member)>(), field.zero_keeps});
    });
    return out;
  }();
  return fields;
}

std::string marks(std::size_t count);  // "?, ?, ?"
// "a, b, c": the leading columns, then the fields.
std::string column_list(std::initializer_list<std::string_view> leading, const std::vector<StoredField>&);
// "a = excluded.a, b = excluded.b": what an ON CONFLICT sets, without the columns that name the row.
std::string assignments(const std::vector<StoredField>&, std::initializer_list<std::string_view> keys = {});
// Whether a row of the table differs from the one that was to be inserted: the WHERE of an ON CONFLICT.
std::string differences(std::string_view table, const std::vector<StoredField>&);
// INSERT of the leading columns and the fields; `verb` as SQLite takes it, for example "INSERT OR REPLACE".
std::string insert_statement(std::string_view verb, std::string_view table,
                             std::initializer_list<std::string_view> leading,
                             const std::vector<StoredField>&);
// INSERT of the fields; where the row that `keys` name is there already, its fields are stored anew.
std::string upsert_statement(std::string_view table, std::initializer_list<std::string_view> keys,
                             const std::vector<StoredField>&);
// Sets all fields but the first, which names the row.
std::string update_statement(std::string_view table, const std::vector<StoredField>&);
// "t.a, t.b, NULL": the fields as a SELECT takes them; those that the table lacks come as NULL.
std::string select_list(const TableColumns&, std::string_view table, std::string_view alias,
                        const std::vector<StoredField>&);

template <class T>
void put_value(Statement& statement, int at, const T& value) {
  statement.put(at, value);
}
template <class T>
void read_value(const Rows& rows, int at, T& value) {
  rows.read(at, value);
}
// Ends the transaction with an error that names the row: its column `at` holds what no store wrote.
void refuse_text(const Rows& rows, int at, std::string_view what, std::string_view why);
// A record is stored as JSON text, one that says nothing as ''.
template <Recorded T>
void put_value(Statement& statement, int at, const T& record) {
  statement.put_copy(at, record == T() ? std::string() : to_text(record));
}
template <Recorded T>
void read_value(const Rows& rows, int at, T& record) {
  const std::string_view text = rows.text(at);
  if (text.empty()) return;
  if (auto found = from_text<T>(text))
    record = std::move(*found);
  else
    refuse_text(rows, at, "record", found.error().message);
}
// The options of a sweep are JSON text too.
void put_value(Statement&, int at, const SweepOptions&);
void read_value(const Rows&, int at, SweepOptions&);
// Stored as a JSON list.
void put_value(Statement&, int at, const std::vector<SentTraffic>&);
void read_value(const Rows&, int at, std::vector<SentTraffic>&);

// Binds the fields from parameter `first` on; returns the parameter after the last one.
template <class Record>
int put_fields(Statement& statement, int first, const Record& record) {
  for_each_field(record, [&](const auto& field, const auto& member) {
    if constexpr (std::remove_cvref_t<decltype(field)>::kIsStored) {
      if constexpr (requires { member.has_value(); }) {
        if (!member && field.absent_is_empty) return statement.put(first++, "");
      }
      put_value(statement, first++, member);
    }
  });
  return first;
}

// Reads the fields from column `first` on; returns the column after the last one. NULL leaves a member as it
// is; a double becomes NaN, because a number that is not finite is stored as NULL.
template <class Record>
int read_fields(const Rows& rows, int first, Record& record) {
  for_each_field(record, [&](const auto& field, auto& member) {
    if constexpr (std::remove_cvref_t<decltype(field)>::kIsStored) {
      const int at = first++;
      if (!rows.null(at))
        read_value(rows, at, member);
      else if constexpr (std::is_same_v<std::remove_cvref_t<decltype(member)>, double>)
        member = std::nan("");
    }
  });
  return first;
}

// Writes one record: as insert_statement() without leading columns, and the like.
template <class Record>
void run_with_fields(Transaction& work, std::string_view sql, const Record& record) {
  if (Statement* statement = work.ready(sql)) {
    put_fields(*statement, 1, record);
    work.finish(*statement);
  }
}

}  // namespace sweep::store
