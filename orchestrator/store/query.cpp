// People's own SQL: one statement, on a connection that cannot write, behind an authorizer that lets only
// reading through.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "orchestrator/store/sqlite_store.h"

namespace sweep::store {
namespace {

constexpr std::array<std::string_view, 5> kPragmas{"table_info", "table_xinfo", "index_list", "index_info",
                                                   "foreign_key_list"};

int authorize(void*, int action, const char* first, const char* second, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return second && std::string_view(second) == "load_extension" ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA:  // as the table-valued functions pragma_table_info(...) and so on
      return first && std::ranges::find(kPragmas, std::string_view(first)) != kPragmas.end() ? SQLITE_OK
                                                                                             : SQLITE_DENY;
    default:
      return SQLITE_DENY;
  }
}

// SQLite's own words, and a line with a caret under the offending place where SQLite knows it.
std::string explain_sql(sqlite3* db, std::string_view sql, int code) {
  const int at = sqlite3_error_offset(db);
  std::string message = (code & 0xff) == SQLITE_AUTH
                            ? std::string("only reading is allowed here (one SELECT statement)")
                            : std::string(sqlite3_errmsg(db));
  if (at < 0 || static_cast<std::size_t>(at) > sql.size()) return "SQL error: " + message;
  const auto begin = at == 0 ? 0 : sql.rfind('\n', static_cast<std::size_t>(at) - 1) + 1;  // npos + 1 == 0
  const auto line = sql.substr(begin, sql.find('\n', static_cast<std::size_t>(at)) - begin);
  return fmt::format("SQL error at character {}: {}\n  {}\n  {}^", at + 1, message, line,
                     std::string(static_cast<std::size_t>(at) - begin, ' '));
}

Value value_at(sqlite3_stmt* row, int column) {
  switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER:
      return i64{sqlite3_column_int64(row, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(row, column);
    case SQLITE_NULL:
      return std::monostate{};
    default: {
      const auto* bytes = static_cast<const char*>(sqlite3_column_blob(row, column));
      return std::string(bytes ? bytes : "", static_cast<std::size_t>(sqlite3_column_bytes(row, column)));
    }
  }
}

Expected<Table> read_all(Db& db, Statement& statement, std::string_view sql) {
  Table table;
  const int width = sqlite3_column_count(statement.handle());
  for (int c = 0; c < width; ++c) table.columns.emplace_back(sqlite3_column_name(statement.handle(), c));
  int code = SQLITE_ROW;
  while ((code = statement.step()) == SQLITE_ROW) {
    auto& row = table.rows.emplace_back();
    row.reserve(static_cast<std::size_t>(width));
    for (int c = 0; c < width; ++c) row.push_back(value_at(statement.handle(), c));
  }
  if (code == SQLITE_DONE) return table;
  const bool of_file =
      (code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CORRUPT;
  return fail(of_file ? db.explain(code) : explain_sql(db.handle(), sql, code));
}

// What follows the first statement: only spaces, semicolons and comments may.
bool only_one(Db& db, std::string_view rest) {
  while (!rest.empty()) {
    sqlite3_stmt* more = nullptr;
    const char* tail = nullptr;
    const int code =
        sqlite3_prepare_v2(db.handle(), rest.data(), static_cast<int>(rest.size()), &more, &tail);
    const Statement owner(more);
    if (code != SQLITE_OK || more) return false;
    rest.remove_prefix(static_cast<std::size_t>(tail - rest.data()));
  }
  return true;
}

}  // namespace

Expected<Table> SqliteStore::query(std::string_view sql) {
  constexpr std::size_t kLongest = 1u << 20;
  if (sql.size() > kLongest) return fail(fmt::format("the SQL is longer than {} bytes", kLongest));
  if (!query_db_) {
    auto opened = open_for_reading(db_->path(), seams_.busy_timeout_ms);
    if (!opened) return tl::unexpected<Error>(opened.error());
    if (auto done = (*opened)->execute("PRAGMA query_only = ON; PRAGMA trusted_schema = OFF"); !done)
      return tl::unexpected<Error>(done.error());
    sqlite3_set_authorizer((*opened)->handle(), authorize, nullptr);
    query_db_ = std::move(*opened);
  }
  sqlite3* db = query_db_->handle();
  sqlite3_stmt* raw = nullptr;
  const char* tail = nullptr;
  const int code = sqlite3_prepare_v2(db, sql.data(), static_cast<int>(sql.size()), &raw, &tail);
  if (code != SQLITE_OK) return fail(explain_sql(db, sql, code));
  Statement statement(raw);
  if (!raw)
    return fail("the SQL is empty; for example: SELECT trial, mfu FROM results ORDER BY mfu DESC LIMIT 5");
  if (!only_one(*query_db_, sql.substr(static_cast<std::size_t>(tail - sql.data()))))
    return fail("one SQL statement at a time, please: there is something after the first one");
  return read_all(*query_db_, statement, sql);
}

}  // namespace sweep::store
