// People's own SQL: one statement, on a connection that cannot write, behind an authorizer that lets only
// reading through.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/fail.h"
#include "base/number_in.h"
#include "orchestrator/store/opening.h"
#include "orchestrator/store/store_file.h"

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
    case SQLITE_PRAGMA:  // the table-valued functions pragma_table_info(...) and so on ask for this
      return first && std::ranges::find(kPragmas, std::string_view(first)) != kPragmas.end() ? SQLITE_OK
                                                                                             : SQLITE_DENY;
    default:
      return SQLITE_DENY;
  }
}

// Nothing but reading; nothing that takes the machine's memory in one value; no SQL that a damaged file
// brings along.
void harden(sqlite3* db) {
  constexpr int kLongestPattern = 1000, kLongestValue = 16 << 20, kDeepest = 200, kMostVmSteps = 1 << 20;
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, kLongestValue);
  sqlite3_limit(db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, kLongestPattern);
  sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, kDeepest);
  sqlite3_limit(db, SQLITE_LIMIT_VDBE_OP, kMostVmSteps);
  sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_set_authorizer(db, authorize, nullptr);
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

// While it lives, SQLite asks `stop` every few thousand steps of its virtual machine.
class Watched {
 public:
  Watched(sqlite3* db, const std::function<bool()>& stop) : db_(db) {
    constexpr int kSteps = 4000;
    if (stop) sqlite3_progress_handler(db_, kSteps, ask, const_cast<std::function<bool()>*>(&stop));
  }
  ~Watched() { sqlite3_progress_handler(db_, 0, nullptr, nullptr); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  static int ask(void* stop) { return (*static_cast<const std::function<bool()>*>(stop))() ? 1 : 0; }
  sqlite3* db_;
};

// Digits, a minus sign before them, a fraction behind them. Not 046, 0e1 or +1: such words are ids or names, which a number
// would not find again.
bool is_plainly_a_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const auto digits = [](std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const auto dot = text.find('.');
  const auto whole = text.substr(0, dot);
  return digits(whole) && (whole == "0" || whole[0] != '0') &&
         (dot == std::string_view::npos || digits(text.substr(dot + 1)));
}

void bind_one(sqlite3_stmt* statement, int place, const std::string& text) {
  if (is_plainly_a_number(text) && text != "-0") {
    if (const auto whole = number_in<i64>(text)) return void(sqlite3_bind_int64(statement, place, *whole));
    const auto real = text.find('.') == std::string::npos ? std::nullopt : number_in<double>(text);
    if (real) return void(sqlite3_bind_double(statement, place, *real));
  }
  sqlite3_bind_text(statement, place, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

// Values for :name, @name and $name; a number is bound as one. A parameter without a value is an error, and
// so is a value without a parameter.
Expected<void> bind(sqlite3_stmt* statement, const QueryOptions& options) {
  for (int i = 1; i <= sqlite3_bind_parameter_count(statement); ++i) {
    const char* name = sqlite3_bind_parameter_name(statement, i);
    const std::string plain = name ? name + 1 : fmt::format("{}", i);
    const auto given = std::ranges::find(options.values, plain, &std::pair<std::string, std::string>::first);
    if (given == options.values.end())
      return fail(ErrorKind::kMissing, plain,
                  "the SQL has a parameter '{}' without a value; give it with --set {}=VALUE", plain, plain);
    bind_one(statement, i, given->second);
  }
  for (const auto& [name, value] : options.values) {
    const bool known = std::ranges::any_of(std::string_view(":@$"), [&, &key = name](char mark) {
      return sqlite3_bind_parameter_index(statement, (mark + key).c_str()) > 0;
    });
    if (!known) return fail(ErrorKind::kMissing, name, "the SQL has no parameter :{}", name);
  }
  return {};
}

i64 bytes_of(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return static_cast<i64>(sizeof(Value)) + (text ? static_cast<i64>(text->size()) : 0);
}

Expected<Table> read_all(Db& db, Statement& statement, std::string_view sql, const QueryOptions& options) {
  Table table;
  const int width = sqlite3_column_count(statement.handle());
  for (int c = 0; c < width; ++c) table.columns.emplace_back(sqlite3_column_name(statement.handle(), c));
  const Watched watched(db.handle(), options.stop);
  int code = SQLITE_ROW;
  i64 bytes = 0;
  while ((code = statement.step()) == SQLITE_ROW) {
    auto& row = table.rows.emplace_back();
    row.reserve(static_cast<std::size_t>(width));
    for (int c = 0; c < width; ++c) bytes += bytes_of(row.emplace_back(value_at(statement.handle(), c)));
    if (static_cast<i64>(table.rows.size()) > options.most_rows || bytes > options.most_bytes)
      return fail(ErrorKind::kRefused, "",
                  "the answer is larger than {} rows or {} MiB; add a LIMIT, aggregate, or read the file "
                  "with the sqlite3 shell",
                  options.most_rows, options.most_bytes >> 20);
  }
  if (code == SQLITE_DONE) return table;
  if ((code & 0xff) == SQLITE_INTERRUPT) return fail(std::string(kStopped));
  const bool of_file =
      (code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CORRUPT;
  if (of_file) return tl::unexpected(db.explain(code));
  return fail(ErrorKind::kInvalidValue, "", explain_sql(db.handle(), sql, code));
}

// True if nothing follows the first statement but spaces, semicolons and comments.
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

Expected<Table> Answers::query(std::string_view sql, const QueryOptions& options) {
  constexpr std::size_t kLongest = 1u << 20;
  if (sql.size() > kLongest)
    return fail(ErrorKind::kInvalidValue, "", "the SQL is longer than {} bytes", kLongest);
  if (!file_.query_db) {
    auto opened = open_for_reading(file_.db->path(), file_.dependencies.busy_timeout_ms);
    if (!opened) return tl::unexpected<Error>(opened.error());
    if (auto done = (*opened)->execute("PRAGMA query_only = ON; PRAGMA trusted_schema = OFF"); !done)
      return tl::unexpected<Error>(done.error());
    // Table-valued functions are set up on their first use, by a step that the authorizer would refuse.
    if (auto done =
            (*opened)->execute("SELECT 1 FROM json_each('[]') UNION ALL SELECT 1 FROM json_tree('[]')");
        !done)
      return tl::unexpected<Error>(done.error());
    harden((*opened)->handle());
    file_.query_db = std::move(*opened);
  }
  if (options.most_heap > 0) sqlite3_hard_heap_limit64(options.most_heap);
  sqlite3* db = file_.query_db->handle();
  sqlite3_stmt* raw = nullptr;
  const char* tail = nullptr;
  const int code = sqlite3_prepare_v2(db, sql.data(), static_cast<int>(sql.size()), &raw, &tail);
  if (code != SQLITE_OK) return fail(ErrorKind::kInvalidValue, "", explain_sql(db, sql, code));
  Statement statement(raw);
  if (!raw)
    return fail(ErrorKind::kInvalidValue, "",
                "the SQL is empty; for example: SELECT trial, mfu FROM results ORDER BY mfu DESC LIMIT 5");
  if (!only_one(*file_.query_db, sql.substr(static_cast<std::size_t>(tail - sql.data()))))
    return fail(ErrorKind::kInvalidValue, "",
                "only one SQL statement is allowed; there is text after the first one");
  SWEEP_TRY(bind(raw, options));
  return read_all(*file_.query_db, statement, sql, options);
}

}  // namespace sweep::store
