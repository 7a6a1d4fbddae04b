// Opening a database file, sweeps, leases and stop requests.
#include <fmt/format.h>

#include <chrono>

#include "orchestrator/store/settle.h"
#include "orchestrator/store/sqlite_store.h"
#include "orchestrator/store/upgrade.h"

namespace sweep::store {
namespace {

namespace fs = std::filesystem;

// Version 2 adds only what follows from the tables of version 1, so reading does without.
constexpr i64 kOldestReadable = 1;

Seams with_defaults(Seams seams) {
  using namespace std::chrono;
  if (!seams.network_filesystem) seams.network_filesystem = on_network_filesystem;
  if (!seams.now_unix_ns)
    seams.now_unix_ns = [] {
      return i64{duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count()};
    };
  if (!seams.steady_s)
    seams.steady_s = [] { return duration<double>(steady_clock::now().time_since_epoch()).count(); };
  if (!seams.living_pid_start) seams.living_pid_start = living_pid_start;
  if (!seams.self) seams.self = this_process();
  return seams;
}

// On a network filesystem the write-ahead log is not safe; see filesystem.cpp. Every commit is synced: an
// inbox line must never outlive the row it stands for. The indices behind `best` scatter each batch over hundreds
// of pages, so the log is copied into the file after 8192 pages (32 MiB), not after SQLite's 1000. What need not be
// durable is nobody else's either: its file stays locked and its journal in memory.
Expected<void> configure(Db& db, bool network, bool durable) {
  if (auto done =
          db.execute("PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA synchronous = FULL; "
                     "PRAGMA cache_size = -65536");
      !done)
    return done;
  if (!durable)
    return db.execute(
        "PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY");
  return db.execute(network ? "PRAGMA journal_mode = DELETE"
                            : "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 8192");
}

Expected<void> check_path(const fs::path& path, Mode mode) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    return fail(fmt::format("'{}' is a folder; name a database file with --db", path.string()));
  if (mode == Mode::kReadOnly && !fs::exists(path, ignored))
    return fail(fmt::format(
        "there is no database '{}'; `sweep run` makes one, or name another file with --db", path.string()));
  return {};
}

Expected<std::unique_ptr<Db>> open_writable(const fs::path& path, const Seams& seams, bool network) {
  auto db = Db::open(path.string(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, seams.busy_timeout_ms, path);
  if (!db) return db;
  if (sqlite3_db_readonly((*db)->handle(), "main") == 1) return fail((*db)->explain(SQLITE_READONLY));
  const auto identity =
      check_identity(**db, migrations());  // before anything is written into a stranger's file
  if (!identity) return tl::unexpected<Error>(identity.error());
  if (auto done = configure(**db, network, seams.durable); !done) return tl::unexpected<Error>(done.error());
  if (seams.most_pages)
    if (auto done = (*db)->pragma(fmt::format("max_page_count = {}", *seams.most_pages)); !done)
      return tl::unexpected<Error>(done.error());
  if (auto done = bring_up_to_date(**db, migrations()); !done) return tl::unexpected<Error>(done.error());
  return db;
}

Expected<std::unique_ptr<Db>> open_read_only(const fs::path& path, const Seams& seams) {
  auto db = open_for_reading(path, seams.busy_timeout_ms);
  if (!db) return db;
  const auto version = check_identity(**db, migrations());
  if (!version) return tl::unexpected<Error>(version.error());
  const i64 ours = migrations().back().version;
  if (*version < kOldestReadable)
    return fail(fmt::format(
        "database '{}' has version {} and this sweep reads version {}; `sweep resume --db {}` upgrades "
        "it, keeping a backup beside it",
        path.string(), *version, ours, path.string()));
  return db;
}

}  // namespace

// A write-ahead log needs its shared-memory file; where the folder cannot be written and no log is there, the
// file is read as it stands.
Expected<std::unique_ptr<Db>> open_for_reading(const fs::path& path, int busy_timeout_ms) {
  auto db = Db::open(path.string(), SQLITE_OPEN_READONLY, busy_timeout_ms, path);
  if (!db || (*db)->pragma("schema_version")) return db;
  const int code = sqlite3_errcode((*db)->handle()) & 0xff;
  std::error_code ignored;
  const bool no_log_possible = code == SQLITE_CANTOPEN || code == SQLITE_READONLY;
  if (!no_log_possible || fs::exists(path.string() + "-wal", ignored))
    return tl::unexpected((*db)->error(code));
  std::string name = "file:";
  for (const char c : fs::absolute(path).string())
    name += std::string_view("?#%").find(c) == std::string_view::npos
                ? std::string(1, c)
                : fmt::format("%{:02x}", static_cast<int>(c));
  return Db::open(name + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, busy_timeout_ms, path);
}

Expected<std::unique_ptr<Store>> Store::open(const fs::path& path, Mode mode) {
  return open(path, mode, Seams{});
}

Expected<std::unique_ptr<Store>> Store::open(const fs::path& path, Mode mode, Seams given) {
  if (auto fine = check_path(path, mode); !fine) return tl::unexpected<Error>(fine.error());
  Seams seams = with_defaults(std::move(given));
  const bool network = seams.network_filesystem(path);
  auto db = mode == Mode::kReadWrite ? open_writable(path, seams, network) : open_read_only(path, seams);
  if (!db) return tl::unexpected<Error>(db.error());
  Work work(**db, Work::kRead);
  auto selects = selects_for(work);
  auto read = work.commit(std::move(selects));
  if (!read) return tl::unexpected<Error>(read.error());
  return std::make_unique<SqliteStore>(std::move(*db), mode, std::move(seams), network, std::move(*read));
}

SqliteStore::SqliteStore(std::unique_ptr<Db> db, Mode mode, Seams seams, bool network, Selects selects)
    : db_(std::move(db)),
      mode_(mode),
      network_(network),
      seams_(seams),
      selects_(std::move(selects)),
      leases_(std::move(seams), network) {}

namespace {

constexpr const char* kSweepColumns =
    "SELECT id, name, question, grid_path, grid_text, options_json, created_unix_ns FROM sweep ";

std::vector<SweepRow> read_sweeps(Rows&& rows) {
  std::vector<SweepRow> out;
  while (rows.next()) {
    SweepRow row;
    rows.read(0, row.id), rows.read(1, row.name), rows.read(2, row.question), rows.read(3, row.grid_path);
    rows.read(4, row.grid_text), rows.read(5, row.options_json), rows.read(6, row.created_unix_ns);
    out.push_back(std::move(row));
  }
  return out;
}

std::vector<SweepRow> named(Work& work, const std::string& name) {
  return read_sweeps(work.rows(std::string(kSweepColumns) + "WHERE name = ?", name));
}

}  // namespace

Expected<SweepRow> SqliteStore::ensure_sweep(const SweepRow& wanted) {
  if (wanted.name.empty()) return fail("a sweep needs a name");
  Work work(*db_, Work::kWrite);
  auto found = named(work, wanted.name);
  if (found.empty()) {
    work.run(
        "INSERT INTO sweep(name, question, grid_path, grid_text, options_json, created_unix_ns) VALUES (?, "
        "?, ?, ?, ?, ?)",
        wanted.name, wanted.question, wanted.grid_path, wanted.grid_text, wanted.options_json,
        wanted.created_unix_ns ? wanted.created_unix_ns : leases_.now());
  } else if (!leases_.held_by_other(work, found.front().id)) {
    leases_.guard(work, found.front().id);
    work.run("UPDATE sweep SET question = ?, grid_path = ?, grid_text = ?, options_json = ? WHERE id = ?",
             wanted.question, wanted.grid_path, wanted.grid_text, wanted.options_json, found.front().id);
  }
  found = named(work, wanted.name);
  return work.commit(found.empty() ? SweepRow{} : found.front());
}

Expected<std::vector<SweepRow>> SqliteStore::sweeps() {
  Work work(*db_, Work::kRead);
  auto all = read_sweeps(work.rows(std::string(kSweepColumns) + "ORDER BY id"));
  return work.commit(std::move(all));
}

Expected<SweepRow> SqliteStore::find_sweep(const std::optional<std::string>& name) {
  const auto all = sweeps();
  if (!all) return tl::unexpected<Error>(all.error());
  if (all->empty())
    return fail(
        fmt::format("database '{}' holds no sweep; `sweep run GRID` makes one", db_->path().string()));
  if (!name) return all->back();
  std::string list;
  for (const auto& row : *all) {
    if (row.name == *name) return row;
    list += (list.empty() ? "" : ", ") + row.name;
  }
  return fail(
      fmt::format("database '{}' holds no sweep '{}'; it holds: {}", db_->path().string(), *name, list));
}

// Who runs a sweep gives up what it holds rather than lose a result: other people's locks are worth a long wait.
constexpr int kHoldersPatience = 12;

Expected<std::optional<LeaseHolder>> SqliteStore::take_lease(i64 sweep, bool take_over) {
  Work work(*db_, Work::kWrite);
  const auto other = leases_.take(work, sweep, take_over);
  if (!other) {
    work.run("DELETE FROM stop_request WHERE sweep = ?", sweep);
    const Outcome lost[] = {Outcome::kNodeLost};
    reopen_entries(work, sweep, lost);
  }
  auto done = work.commit(other);
  if (done && !other) {
    leases_.committed(sweep, true);
    db_->wait_for_locks(kHoldersPatience * seams_.busy_timeout_ms);
  }
  return done;
}

Expected<std::optional<LeaseHolder>> SqliteStore::lease(i64 sweep) {
  Work work(*db_, Work::kRead);
  auto holder = leases_.holder(work, sweep);
  return work.commit(std::move(holder));
}

Expected<void> SqliteStore::beat(i64 sweep) {
  const i64 before = sqlite3_total_changes64(db_->handle());
  Work work(*db_, Work::kWrite);
  leases_.beat(work, sweep);
  auto done = work.commit();
  // A beat is no progress: what was counted stands.
  if (counted_ && counted_->own == before) counted_->own = sqlite3_total_changes64(db_->handle());
  return done;
}

Expected<void> SqliteStore::release_lease(i64 sweep) {
  Work work(*db_, Work::kWrite);
  leases_.release(work, sweep);
  auto done = work.commit();
  if (done) leases_.committed(sweep, false);
  return done;
}

Expected<void> SqliteStore::request_stop(i64 sweep, bool now) {
  Work work(*db_, Work::kWrite);
  work.run("INSERT OR REPLACE INTO stop_request(sweep, now, unix_ns) VALUES (?, ?, ?)", sweep, now,
           leases_.now());
  return work.commit();
}

Expected<std::optional<bool>> SqliteStore::stop_requested(i64 sweep) {
  Work work(*db_, Work::kRead);
  auto now = work.one<bool>("SELECT now FROM stop_request WHERE sweep = ?", sweep);
  return work.commit(std::move(now));
}

Expected<void> SqliteStore::add_event(i64 sweep, const std::string& kind, const std::string& text) {
  Work work(*db_, Work::kWrite);
  leases_.refuse_if_lost(work, sweep);
  work.run("INSERT INTO event(sweep, unix_ns, kind, text) VALUES (?, ?, ?, ?)", sweep, leases_.now(), kind,
           text);
  return work.commit();
}

}  // namespace sweep::store
