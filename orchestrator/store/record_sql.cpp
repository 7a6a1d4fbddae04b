#include "orchestrator/store/record_sql.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "schema/codec.h"

namespace sweep::store {

std::string marks(std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += i ? ", ?" : "?";
  return out;
}

std::set<std::string> columns_in(Transaction& work, std::string_view table) {
  std::set<std::string> out;
  auto rows = work.rows("SELECT name FROM pragma_table_info(?)", table);
  while (rows.next()) out.insert(rows.get<std::string>(0));
  return out;
}

std::string column_list(std::initializer_list<std::string_view> leading,
                        const std::vector<StoredField>& fields) {
  std::string out;
  const auto add = [&](std::string_view name) { out += (out.empty() ? "" : ", ") + std::string(name); };
  for (const auto name : leading) add(name);
  for (const auto& field : fields) add(field.column);
  return out;
}

std::string insert_statement(std::string_view verb, std::string_view table,
                             std::initializer_list<std::string_view> leading,
                             const std::vector<StoredField>& fields) {
  return fmt::format("{} INTO {}({}) VALUES ({})", verb, table, column_list(leading, fields),
                     marks(leading.size() + fields.size()));
}

std::string assignments(const std::vector<StoredField>& fields,
                        std::initializer_list<std::string_view> keys) {
  std::string out;
  for (const auto& field : fields)
    if (std::ranges::find(keys, field.column) == keys.end())
      out += fmt::format("{}{} = excluded.{}", out.empty() ? "" : ", ", field.column, field.column);
  return out;
}

std::string differences(std::string_view table, const std::vector<StoredField>& fields) {
  std::string out;
  for (const auto& field : fields)
    out += fmt::format("{}{}.{} IS NOT excluded.{}", out.empty() ? "" : " OR ", table, field.column,
                       field.column);
  return out;
}

std::string upsert_statement(std::string_view table, std::initializer_list<std::string_view> keys,
                             const std::vector<StoredField>& fields) {
  return fmt::format("{} ON CONFLICT({}) DO UPDATE SET {}", insert_statement("INSERT", table, {}, fields),
                     column_list(keys, {}), assignments(fields, keys));
}

std::string update_statement(std::string_view table, const std::vector<StoredField>& fields) {
  std::string set;
  for (std::size_t at = 1; at < fields.size(); ++at) {
    const std::string value = fmt::format("?{}", at + 1);
    set += fmt::format("{}{} = ", at > 1 ? ", " : "", fields[at].column);
    set +=
        fields[at].zero_keeps ? fmt::format("COALESCE(NULLIF({}, 0), {})", value, fields[at].column) : value;
  }
  return fmt::format("UPDATE {} SET {} WHERE {} = ?1", table, set, fields.front().column);
}

std::string select_list(const TableColumns& columns, std::string_view table, std::string_view alias,
                        const std::vector<StoredField>& fields) {
  const auto present = columns.find(table);
  std::string out;
  for (const auto& field : fields) {
    out += out.empty() ? "" : ", ";
    const bool there = present != columns.end() && present->second.contains(field.column);
    out += there ? fmt::format("{}.{}", alias, field.column) : std::string("NULL");
  }
  return out;
}

void put_value(Statement& statement, int at, const SweepOptions& options) {
  statement.put_copy(at, to_text(options));
}

void read_value(const Rows& rows, int at, SweepOptions& options) {
  if (auto found = sweep_options_from(rows.text(at)))
    options = std::move(*found);
  else
    refuse_text(rows, at, "options", found.error().message);
}

void put_value(Statement& statement, int at, const std::vector<SentTraffic>& sent) {
  nlohmann::json list = nlohmann::json::array();
  for (const SentTraffic& each : sent) list.push_back(to_json(each));
  statement.put_copy(at, dump(list));
}

void read_value(const Rows& rows, int at, std::vector<SentTraffic>& sent) {
  sent.clear();
  const auto list = parse_json(rows.text(at));
  if (!list || !list->is_array())
    return refuse_text(rows, at, "list", list ? "another form of JSON" : list.error().message);
  for (const auto& item : *list) {
    auto each = from_json<SentTraffic>(item);
    if (!each) return refuse_text(rows, at, "list of traffic", each.error().message);
    sent.push_back(std::move(*each));
  }
}

void refuse_text(const Rows& rows, int at, std::string_view what, std::string_view why) {
  const auto name = [&](int column) { return std::string_view(sqlite3_column_name(rows.handle(), column)); };
  rows.refuse(
      {fmt::format("{}: column '{}' of the row with {} = {} holds no {} ({}); restore the file from a "
                   "copy",
                   sqlite3_db_filename(sqlite3_db_handle(rows.handle()), "main"), name(at), name(0),
                   rows.text(0), what, why),
       ErrorKind::kUnreadable, std::string(name(at))});
}

}  // namespace sweep::store
