#include "orchestrator/store/db.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/expected.h"
#include "orchestrator/store/enumerators.h"

namespace sweep::store {
namespace {

// "Read-only file system", "Permission denied": the file's own answer, else its folder's, else that of what SQLite keeps
// beside it, else SQLite's.
std::string why_not_writable(const std::filesystem::path& file, const char* otherwise) {
  const auto folder = std::filesystem::absolute(file).parent_path();
  for (const auto& path : {file, folder})
    if (::access(path.c_str(), W_OK) != 0 && errno != ENOENT) return std::strerror(errno);
  for (const char* part : {"-wal", "-shm"})
    if (const auto path = file.string() + part; ::access(path.c_str(), W_OK) != 0 && errno != ENOENT)
      return fmt::format("'{}': {}; its owner may remove it while no run goes on", path,
                         std::strerror(errno));
  return otherwise;
}

// The ways in which SQLite cannot open a file, which it calls by one name.
std::string why_not_openable(const std::filesystem::path& file, const std::string& cause) {
  constexpr std::size_t kLongestPath = 512, kLongestSuffix = 8;  // SQLite's unix VFS, "-journal"
  std::error_code ignored;
  const auto whole = std::filesystem::absolute(file, ignored);
  const auto folder = whole.parent_path();
  if (whole.string().size() + kLongestSuffix > kLongestPath)
    return fmt::format("its path has {} bytes, and SQLite takes at most {}; use a shorter one",
                       whole.string().size(), kLongestPath - kLongestSuffix);
  if (!std::filesystem::is_directory(folder, ignored))
    return fmt::format("there is no folder '{}'; make it, or name another file with --db", folder.string());
  if (std::filesystem::exists(whole.string() + "-wal", ignored) && ::access(folder.c_str(), W_OK) != 0)
    return fmt::format(
        "{}: its folder cannot be written, which SQLite needs to read '{}-wal'; copy both files to a folder "
        "of "
        "your own",
        std::strerror(errno), file.string());
  return fmt::format("{}; check that you may read it and write in its folder",
                     why_not_writable(file, cause.c_str()));
}

}  // namespace

std::filesystem::path resolved(const std::filesystem::path& path) {
  std::error_code error;
  const auto file = std::filesystem::weakly_canonical(path, error);
  return error ? path : file;
}

void Statement::put(int at, double v) {
  if (std::isfinite(v))
    sqlite3_bind_double(handle_, at, v);
  else
    sqlite3_bind_null(handle_, at);
}

void Statement::put(int at, std::string_view v) {
  sqlite3_bind_text64(handle_, at, v.data() ? v.data() : "", v.size(),
                      copies_ ? SQLITE_TRANSIENT : SQLITE_STATIC, SQLITE_UTF8);
}

void Statement::put_copy(int at, std::string_view v) {
  sqlite3_bind_text64(handle_, at, v.data() ? v.data() : "", v.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

Expected<std::unique_ptr<Db>> Db::open(const std::string& name, int flags, int busy_timeout_ms,
                                       std::filesystem::path shown_as) {
  sqlite3* handle = nullptr;
  // No locks between threads: a store is used by one at a time.
  const int code =
      sqlite3_open_v2(name.c_str(), &handle, flags | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<Db> db(new Db(handle, std::move(shown_as), busy_timeout_ms));
  if (code != SQLITE_OK) return tl::unexpected(db->explain(code));
  sqlite3_busy_timeout(handle, busy_timeout_ms);
  return db;
}

void Db::wait_for_locks(int timeout_ms) {
  busy_timeout_ms_ = timeout_ms;
  sqlite3_busy_timeout(handle_, timeout_ms);
}

Db::~Db() {
  statements_.clear();
  sqlite3_close(handle_);
}

Statement* Db::prepare(std::string_view sql) {
  const auto it = statements_.find(sql);
  if (it != statements_.end()) return it->second.get();
  sqlite3_stmt* raw = nullptr;
  const std::string text = with_numbers(sql);
  const int code = sqlite3_prepare_v3(handle_, text.c_str(), static_cast<int>(text.size()) + 1,
                                      SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (code != SQLITE_OK || !raw) return nullptr;
  return statements_.emplace(sql, std::make_unique<Statement>(raw)).first->second.get();
}

Expected<void> Db::execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return tl::unexpected(explain(code));
  return {};
}

Expected<void> Db::step(std::string_view sql) {
  Statement* statement = prepare(sql);
  if (!statement) return tl::unexpected(explain(sqlite3_extended_errcode(handle_)));
  const int code = statement->step();
  if (code == SQLITE_DONE) {
    statement->reset();
    return {};
  }
  auto failure = tl::unexpected(explain(code));  // before reset() forgets it
  statement->reset();
  return failure;
}

Expected<i64> Db::pragma(const std::string& name) {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v2(handle_, ("PRAGMA " + name).c_str(), -1, &raw, nullptr);
  if (code != SQLITE_OK) return tl::unexpected(explain(code));
  Statement statement(raw);
  const int stepped = statement.step();
  if (stepped != SQLITE_ROW) return tl::unexpected(explain(stepped));
  return sqlite3_column_int64(raw, 0);
}

std::optional<std::array<unsigned char, 100>> Db::header() const {
  std::array<unsigned char, 100> out{};
  sqlite3_file* file = nullptr;
  sqlite3_file_control(handle_, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (file == nullptr || file->pMethods == nullptr) return std::nullopt;
  if (file->pMethods->xRead(file, out.data(), static_cast<int>(out.size()), 0) != SQLITE_OK)
    return std::nullopt;
  return out;
}

namespace {

ErrorKind kind_of(int sqlite) {
  switch (sqlite & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return ErrorKind::kBusy;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return ErrorKind::kUnwritable;
    case SQLITE_IOERR:
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return ErrorKind::kUnreadable;
    default:
      return ErrorKind::kFailed;
  }
}

// SQLite does not keep the errno of a write that failed within a statement: a limit on the size of files is then
// the likely cause, where there is one.
int size_limit_of(int code) {
  rlimit limit{};
  const bool writes = code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_SHMSIZE;
  const bool limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return writes && limited ? EFBIG : 0;
}

}  // namespace

Error Db::explain(int code) const {
  const int told = handle_ ? sqlite3_system_errno(handle_) : 0;
  const int system = told != 0 ? told : size_limit_of(code);
  const bool full = (code & 0xff) == SQLITE_FULL || ((code & 0xff) == SQLITE_IOERR && is_disk_full(system));
  return {sentence(code, system), full ? ErrorKind::kDiskFull : kind_of(code), path_.string()};
}

std::string Db::sentence(int code, int system) const {
  const std::string file = fmt::format("database '{}'", path_.string());
  const bool told = handle_ && sqlite3_errcode(handle_) != SQLITE_OK;
  const char* detail = told ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
  const std::string cause = system ? fmt::format("{}: {}", detail, std::strerror(system)) : detail;
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return fmt::format(
          "{} stayed locked by another process for {} s; wait for that process, or find it with `fuser {}`",
          file, busy_timeout_ms_ / 1000.0, path_.string());
    case SQLITE_FULL:
      return fmt::format(
          "{} cannot grow ({}); free space on its disk, or raise the quota, and run again: nothing of this "
          "step was stored",
          file, cause);
    case SQLITE_IOERR:
      return fmt::format(
          "{} could not be read or written ({}); check its disk (free space, quota, file size limit) and "
          "run again: nothing of this step was stored",
          file, cause);
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return fmt::format(
          "{} cannot be written ({}); change its permissions and its folder's, or name another file with "
          "--db",
          file, why_not_writable(file_, detail));
    case SQLITE_CANTOPEN:
      return fmt::format("{} could not be opened: {}", file, why_not_openable(file_, cause));
    case SQLITE_NOTADB:
      return fmt::format(
          "'{}' is not a SQLite database, or its first page is damaged; name another file with --db",
          path_.string());
    case SQLITE_CORRUPT:
      return fmt::format(
          "{} is damaged ({}); restore a backup, or save what is readable with `sqlite3 {} .recover`", file,
          cause, path_.string());
    default:
      return fmt::format("{}: {} (SQLite code {})", file, cause, code);
  }
}

bool Rows::next() {
  if (!statement_ || work_.failed()) return false;
  const int code = statement_->step();
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) work_.refuse_code(code);
  return false;
}

std::string_view Rows::text(int c) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_->handle(), c));
  if (!bytes) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_->handle(), c))};
}

void Rows::refuse(Error error) const {
  work_.refuse(std::move(error));
}

std::string_view Rows::blob(int c) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_->handle(), c));
  if (!bytes) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_->handle(), c))};
}

Transaction::Transaction(Db& db, Kind kind) : db_(db) {
  auto begun = db_.step(kind == kWrite ? "BEGIN IMMEDIATE" : "BEGIN");
  if (begun)
    open_ = true;
  else
    failure_ = begun.error();
}

Transaction::~Transaction() {
  if (open_ && !sqlite3_get_autocommit(db_.handle()))
    sqlite3_exec(db_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

Statement* Transaction::ready(std::string_view sql) {
  if (failed()) return nullptr;
  Statement* statement = db_.prepare(sql);
  if (!statement) refuse_code(sqlite3_extended_errcode(db_.handle()));
  return statement;
}

void Transaction::finish(Statement& statement) {
  int code = SQLITE_ROW;
  while (code == SQLITE_ROW) code = statement.step();
  if (code != SQLITE_DONE) refuse_code(code);
  statement.reset();
}

void Transaction::refuse(Error error) {
  if (!failure_) failure_ = std::move(error);
}

Expected<void> Transaction::commit() {
  if (failure_) return tl::unexpected<Error>(*failure_);
  if (auto done = db_.step("COMMIT"); !done) {
    failure_ = done.error();
    return done;
  }
  open_ = false;
  return {};
}

}  // namespace sweep::store
