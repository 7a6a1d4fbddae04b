#include "orchestrator/store/opening.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "base/fail.h"
#include "base/files.h"
#include "base/number_in.h"
#include "orchestrator/store/store_file.h"
#include "orchestrator/store/upgrade.h"

namespace sweep::store {
namespace {

namespace fs = std::filesystem;

enum class Found { kNew, kExisting };

constexpr std::string_view kNewSuffix = ".new-";

// On a network filesystem the write-ahead log is not safe; see filesystem.cpp. A run may have the file open on a host that
// sees it so, while it is a local one here (the host that exports it): the log is turned on where nobody holds a lease.
Expected<void> choose_journal(Db& db, Found found, bool network) {
  if (network) return db.execute("PRAGMA journal_mode = DELETE");
  if (found == Found::kExisting) {
    Transaction work(db, Transaction::kRead);
    const auto leases = work.one<i64>("SELECT count(*) FROM lease");
    SWEEP_TRY(work.commit());
    if (leases.value_or(0) > 0) return {};
  }
  return db.execute("PRAGMA journal_mode = WAL");
}

// Every commit is synced: an
// inbox line must never outlive the row it stands for. The indices behind `best` scatter each batch over
// hundreds of pages, so the log is copied into the file after 8192 pages (32 MiB), not after SQLite's 1000.
// A file that need not be durable has no other readers: it stays locked, with its journal in memory.
Expected<void> configure(Db& db, Found found, bool network, bool durable) {
  if (auto done =
          db.execute("PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA synchronous = FULL; "
                     "PRAGMA cache_size = -65536");
      !done)
    return done;
  if (!durable)
    return db.execute(
        "PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY");
  SWEEP_TRY(db.execute("PRAGMA wal_autocheckpoint = 8192"));
  return choose_journal(db, found, network);
}

// Checks what is at the path before SQLite opens it: opening a FIFO would wait for a writer for ever.
Expected<void> check_path(const fs::path& path, bool may_be_absent) {
  if (path == ":memory:")
    return fail(ErrorKind::kInvalidValue, path.string(),
                "':memory:' is SQLite's name for a database that ends with its program, so no other command "
                "could read its results; name a file with --db, for example one in /dev/shm");
  std::error_code error;
  const auto kind = fs::status(path, error).type();
  const auto refuse = [&](const char* what) {
    return fail(ErrorKind::kUnreadable, path.string(),
                "'{}' is {}, not a database; name a database file with --db", path.string(), what);
  };
  switch (kind) {
    case fs::file_type::regular:
      if (fs::file_size(path, error) == 0 && !error) return refuse("an empty file");
      return {};
    case fs::file_type::not_found:
      if (may_be_absent) return {};
      return fail(ErrorKind::kNotFound, path.string(),
                  "there is no database '{}'; `sweep run` makes one, or name another file with --db",
                  path.string());
    case fs::file_type::directory:
      return refuse("a folder");
    case fs::file_type::fifo:
      return refuse("a FIFO");
    case fs::file_type::socket:
      return refuse("a socket");
    case fs::file_type::character:
    case fs::file_type::block:
      return refuse("a device");
    default:
      return fail("'{}' cannot be looked at: {}", path.string(), error.message());
  }
}

// shown_as: what errors call it.
Expected<std::unique_ptr<Db>> open_file(const fs::path& path, const fs::path& shown_as, Found found,
                                        const StoreDependencies& dependencies, bool network) {
  const int flags = SQLITE_OPEN_READWRITE | (found == Found::kNew ? SQLITE_OPEN_CREATE : 0);
  auto db = Db::open(path.string(), flags, dependencies.busy_timeout_ms, shown_as);
  if (!db) return db;
  if (sqlite3_db_readonly((*db)->handle(), "main") == 1)
    return tl::unexpected((*db)->explain(SQLITE_READONLY));
  const auto identity =
      check_identity(**db, migrations());  // before anything is written into a stranger's file
  if (!identity) return tl::unexpected<Error>(identity.error());
  if (found == Found::kExisting && *identity == 0)
    return fail(ErrorKind::kUnreadable, path.string(), not_ours(path));
  SWEEP_TRY(configure(**db, found, network, dependencies.durable));
  if (dependencies.most_pages)
    SWEEP_TRY((*db)->pragma(fmt::format("max_page_count = {}", *dependencies.most_pages)));
  SWEEP_TRY(bring_up_to_date(**db, migrations()));
  return db;
}

// Whether a process that was killed left this file while it made the database. A process of another host, or of another
// container, is not seen here: its file is younger than a few seconds.
bool is_left_behind(const fs::directory_entry& file, const std::string& begin) {
  constexpr std::chrono::seconds kLongestCreation{5};
  const std::string name = file.path().filename();
  const auto pid =
      name.starts_with(begin) ? number_in<i64>(std::string_view(name).substr(begin.size())) : std::nullopt;
  if (!pid || (*pid != ::getpid() && living_pid_start(*pid))) return false;
  std::error_code error;
  const auto written = file.last_write_time(error);
  return !error && written < fs::file_time_type::clock::now() - kLongestCreation;
}

// A new database gets its name once it is complete, so that others meet it whole or not at all, and a full
// disk leaves nothing. Whoever names it first has made it.
Expected<void> create(const fs::path& path, const StoreDependencies& dependencies, bool network) {
  const fs::path unfinished = fmt::format("{}{}{}", path.string(), kNewSuffix, ::getpid());
  std::error_code error, ignored;
  remove_left_behind(path, kNewSuffix);
  remove_parts(unfinished);
  auto db = open_file(unfinished, path, Found::kNew, dependencies, network);
  auto made = db ? Expected<void>() : tl::unexpected(db.error());
  if (made)
    if (const int code = checkpoint(**db); code != SQLITE_OK) made = tl::unexpected((*db)->explain(code));
  if (db) db->reset();
  if (made) fs::create_hard_link(unfinished, path, error);
  const bool no_links = error && error != std::errc::file_exists;
  if (no_links && !fs::exists(path, ignored)) fs::rename(unfinished, path, error);
  remove_parts(unfinished);
  if (!made || !error || fs::exists(path, ignored)) return made;
  return fail("database '{}' could not be created: {}", path.string(), error.message());
}

Expected<std::unique_ptr<Db>> open_writable(const fs::path& path, const StoreDependencies& dependencies,
                                            bool network) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) SWEEP_TRY(create(path, dependencies, network));
  return open_file(path, path, Found::kExisting, dependencies, network);
}

Expected<std::unique_ptr<Db>> open_read_only(const fs::path& path, const StoreDependencies& dependencies) {
  auto db = open_for_reading(path, dependencies.busy_timeout_ms);
  if (!db) return db;
  const auto version = check_identity(**db, migrations());
  if (!version) return tl::unexpected<Error>(version.error());
  if (*version == 0) return fail(ErrorKind::kUnreadable, path.string(), not_ours(path));
  return db;
}

// how: a parameter of SQLite's file names (https://www.sqlite.org/uri.html).
Expected<std::unique_ptr<Db>> open_as(const fs::path& path, const char* how, int busy_timeout_ms) {
  std::string name = "file:";
  for (const char c : fs::absolute(path).string())
    name += std::string_view("?#%").find(c) == std::string_view::npos
                ? std::string(1, c)
                : fmt::format("%{:02x}", static_cast<int>(c));
  return Db::open(name + '?' + how, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, busy_timeout_ms, path);
}

Expected<std::unique_ptr<Db>> open_rolled_back(const fs::path& path, int busy_timeout_ms) {
  {
    SWEEP_GET(auto writer, Db::open(path.string(), SQLITE_OPEN_READWRITE, busy_timeout_ms, path));
    if (sqlite3_db_readonly(writer->handle(), "main") == 1)
      return fail(ErrorKind::kUnreadable, path.string(),
                  "'{}' was left in the middle of a write (its -journal is there), which must be undone "
                  "before it is read; run this command once as a user who may write the file and its folder",
                  path.string());
    if (const auto read = writer->pragma("schema_version"); !read) return tl::unexpected<Error>(read.error());
  }
  return Db::open(path.string(), SQLITE_OPEN_READONLY, busy_timeout_ms, path);
}

}  // namespace

void remove_left_behind(const fs::path& path, std::string_view suffix) {
  const std::string begin = path.filename().string().append(suffix);
  std::vector<fs::path> left;
  std::error_code ignored;
  for (fs::directory_iterator at(fs::absolute(path).parent_path(), ignored), end; at != end;
       at.increment(ignored))
    if (is_left_behind(*at, begin)) left.push_back(at->path());
  for (const auto& file : left) remove_parts(file);
}

void remove_parts(const fs::path& file) {
  std::error_code ignored;
  for (const char* part : {"", "-wal", "-shm", "-journal"}) fs::remove(file.string() + part, ignored);
}

// A write-ahead log needs its shared-memory file; where that cannot be made (the folder cannot be written, the disk is
// full) and no log is there, the file is read as it stands. So it is by a user who may not write it: SQLite would make
// both files, and they would be this user's, so that the owner could not write any more. A file without a log is read
// under SQLite's locks: its writers write into it. A writer that was killed in a commit leaves a journal, which only one
// that may write rolls back.
Expected<std::unique_ptr<Db>> open_for_reading(const fs::path& path, int busy_timeout_ms) {
  SWEEP_TRY(check_path(path, false));
  const bool may_write = ::access(path.c_str(), W_OK) == 0;
  auto db = may_write ? Db::open(path.string(), SQLITE_OPEN_READONLY, busy_timeout_ms, path)
                      : open_as(path, "readonly_shm=1", busy_timeout_ms);
  if (!db) return db;
  const std::string file = (*db)->file().string();
  const bool may_stand = keeps_log(**db);
  std::error_code ignored;
  const bool has_journal = fs::exists(file + "-journal", ignored);
  if (!may_write && may_stand && !has_journal && !fs::exists(file + "-wal", ignored))
    return open_as(path, "immutable=1", busy_timeout_ms);
  if ((*db)->pragma("schema_version")) return db;
  const int code = sqlite3_extended_errcode((*db)->handle());
  const bool no_room =
      code == SQLITE_IOERR_SHMSIZE || code == SQLITE_IOERR_SHMOPEN || (code & 0xff) == SQLITE_FULL;
  const bool no_log_possible =
      no_room || (code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY;
  if (no_log_possible && has_journal) return open_rolled_back(path, busy_timeout_ms);
  const bool has_log = no_room ? files::size_of(file + "-wal") > 0 : fs::exists(file + "-wal", ignored);
  if (!no_log_possible || has_log || !may_stand) return tl::unexpected((*db)->explain(code));
  return open_as(path, "immutable=1", busy_timeout_ms);
}

bool is_read_as_it_stood(Db& db) {
  return sqlite3_uri_boolean(sqlite3_db_filename(db.handle(), "main"), "immutable", 0) != 0;
}

Expected<std::unique_ptr<Db>> open_database(const fs::path& path, Mode mode,
                                            const StoreDependencies& dependencies, bool network) {
  SWEEP_TRY(check_path(path, mode == Mode::kReadWrite));
  return mode == Mode::kReadWrite ? open_writable(path, dependencies, network)
                                  : open_read_only(path, dependencies);
}

}  // namespace sweep::store
