// Db: one SQLite connection with its prepared statements. Work: one transaction on it; the first failure is
// kept, later statements do nothing, and nothing is stored unless commit() says so.
#pragma once
#include <sqlite3.h>

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/expected.h"
#include "schema/outcome.h"
#include "schema/progress.h"
#include "schema/trial.h"

namespace sweep::store {

// The place of the file, symbolic links followed: SQLite keeps a log and a journal beside it, not beside the link.
std::filesystem::path resolved(const std::filesystem::path&);

// A prepared statement. Numbers that are not finite are bound as NULL.
class Statement {
 public:
  explicit Statement(sqlite3_stmt* handle) : handle_(handle) {}
  ~Statement() { sqlite3_finalize(handle_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void put(int at, std::nullptr_t) { sqlite3_bind_null(handle_, at); }
  void put(int at, bool v) { sqlite3_bind_int64(handle_, at, v ? 1 : 0); }
  void put(int at, int v) { sqlite3_bind_int64(handle_, at, v); }
  void put(int at, i64 v) { sqlite3_bind_int64(handle_, at, v); }
  void put(int at, double v);
  // The bytes must live until the statement is done, unless it copies.
  void put(int at, std::string_view v);
  void put(int at, const std::string& v) { put(at, std::string_view(v)); }
  void put(int at, const char* v) { put(at, std::string_view(v)); }
  void put(int at, Outcome v) { put(at, static_cast<i64>(v)); }
  void put(int at, OomKind v) { put(at, static_cast<i64>(v)); }
  void put(int at, State v) { put(at, static_cast<i64>(v)); }
  void put(int at, Phase v) { put(at, to_string(v)); }
  void put(int at, EndCause v) { put(at, to_string(v)); }
  void put_copy(int at, std::string_view v);
  template <class T>
  void put(int at, const std::optional<T>& v) {
    if (v)
      put(at, *v);
    else
      put(at, nullptr);
  }
  template <class... A>
  void put_all(const A&... values) {
    int at = 0;
    (put(++at, values), ...);
  }

  void copies(bool on) { copies_ = on; }
  int step() { return sqlite3_step(handle_); }
  void reset() { sqlite3_reset(handle_); }
  sqlite3_stmt* handle() { return handle_; }

 private:
  sqlite3_stmt* handle_;
  bool copies_ = false;
};

// Looked up without a copy of the text.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

class Db {
 public:
  // flags as sqlite3_open_v2 takes them. shown_as: the path that error sentences name.
  static Expected<std::unique_ptr<Db>> open(const std::string& name, int flags, int busy_timeout_ms,
                                            std::filesystem::path shown_as);
  ~Db();
  Db(const Db&) = delete;
  Db& operator=(const Db&) = delete;

  // How long others' locks are waited for from now on.
  void wait_for_locks(int timeout_ms);
  int lock_patience_ms() const { return busy_timeout_ms_; }

  sqlite3* handle() const { return handle_; }
  const std::filesystem::path& path() const { return path_; }  // the path as it was given, for messages
  const std::filesystem::path& file() const { return file_; }  // resolved() when it was opened
  // Prepared once and kept. Null: the error is in explain(sqlite3_errcode).
  Statement* prepare(std::string_view sql);
  // Ends what prepared statements hold; they are prepared anew when asked for.
  void forget_statements() { statements_.clear(); }
  // Runs statements outside of any transaction of Work (pragmas, BEGIN, migrations).
  Expected<void> execute(const std::string& sql);
  Expected<void> step(std::string_view sql);  // one statement without values, prepared once
  Expected<i64> pragma(const std::string& name);
  // The first bytes of the file, as they are; nullopt: not readable. They are read through SQLite: closing another
  // descriptor of the file would give up SQLite's locks.
  std::optional<std::array<unsigned char, 100>> header() const;
  // A sentence for people: what happened to the file and the way out.
  Error explain(int code) const;

 private:
  Db(sqlite3* handle, std::filesystem::path path, int busy_timeout_ms)
      : handle_(handle), path_(std::move(path)), file_(resolved(path_)), busy_timeout_ms_(busy_timeout_ms) {}
  sqlite3* handle_;
  std::string sentence(int code, int system) const;
  std::filesystem::path path_, file_;
  int busy_timeout_ms_;
  std::unordered_map<std::string, std::unique_ptr<Statement>, TextHash, std::equal_to<>> statements_;
};

class Transaction;

// The rows of one statement, read forward. Ends early when the transaction has failed.
class Rows {
 public:
  Rows(Transaction& work, Statement* statement) : work_(work), statement_(statement) {}
  ~Rows() {
    if (statement_) statement_->reset();
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  bool next();
  template <class T>
  T get(int column) const {
    T value{};
    read(column, value);
    return value;
  }
  void read(int c, i64& v) const { v = sqlite3_column_int64(statement_->handle(), c); }
  void read(int c, int& v) const { v = sqlite3_column_int(statement_->handle(), c); }
  void read(int c, bool& v) const { v = sqlite3_column_int64(statement_->handle(), c) != 0; }
  void read(int c, double& v) const { v = sqlite3_column_double(statement_->handle(), c); }
  void read(int c, Outcome& v) const { v = static_cast<Outcome>(get<i64>(c)); }
  void read(int c, OomKind& v) const { v = static_cast<OomKind>(get<i64>(c)); }
  void read(int c, State& v) const { v = static_cast<State>(get<i64>(c)); }
  void read(int c, std::string& v) const { v = text(c); }
  void read(int c, std::optional<Phase>& v) const { v = phase_from(text(c)); }
  void read(int c, EndCause& v) const { v = end_cause_from(text(c)).value_or(EndCause::kRankFailed); }
  template <class T>
  void read(int c, std::optional<T>& v) const {
    v.reset();
    if (!null(c)) v = get<T>(c);
  }
  bool null(int c) const { return sqlite3_column_type(statement_->handle(), c) == SQLITE_NULL; }
  // Valid until the next call of next().
  std::string_view text(int c) const;
  // Ends the transaction with this sentence: the row holds what no version before this one wrote.
  void refuse(Error) const;
  // Bytes as they are; valid until the next call of next().
  std::string_view blob(int c) const;
  sqlite3_stmt* handle() const { return statement_->handle(); }

 private:
  Transaction& work_;
  Statement* statement_;
};

class Transaction {
 public:
  enum Kind { kRead, kWrite };
  Transaction(Db& db, Kind kind);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  template <class... A>
  void run(std::string_view sql, const A&... values) {
    if (Statement* s = ready(sql)) {
      s->put_all(values...);
      finish(*s);
    }
  }
  template <class... A>
  Rows rows(std::string_view sql, const A&... values) {
    Statement* s = ready(sql);
    if (s) {
      s->copies(true);  // the values may be gone before the last row is read
      s->put_all(values...);
    }
    return Rows(*this, s);
  }
  // The first column of the first row; nullopt: no row, NULL, or failed.
  template <class T, class... A>
  std::optional<T> one(std::string_view sql, const A&... values) {
    Rows found = rows(sql, values...);
    if (!found.next() || found.null(0)) return std::nullopt;
    return found.get<T>(0);
  }
  // A statement to be bound by hand: get it, put, finish.
  Statement* ready(std::string_view sql);
  void finish(Statement&);
  i64 changes() const { return sqlite3_changes64(db_.handle()); }
  i64 last_id() const { return sqlite3_last_insert_rowid(db_.handle()); }

  void refuse(Error);
  void refuse(std::string sentence) { refuse(Error{std::move(sentence)}); }
  void refuse_code(int code) { refuse(db_.explain(code)); }
  bool failed() const { return failure_.has_value(); }
  Expected<void> commit();
  // commit(), then the value or the failure.
  template <class T>
  Expected<T> commit(T value) {
    SWEEP_TRY(commit());
    return value;
  }
  Db& db() { return db_; }

 private:
  Db& db_;
  bool open_ = false;
  std::optional<Error> failure_;
};

}  // namespace sweep::store
