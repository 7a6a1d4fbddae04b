// Opening a database file, sweeps, leases and stop requests.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/expected.h"
#include "base/time.h"
#include "orchestrator/store/settle.h"
#include "orchestrator/store/store_file.h"
#include "orchestrator/store/sweep_rows.h"
#include "orchestrator/store/upgrade.h"
#include "orchestrator/store/write_ahead_log.h"
#include "schema/rehearsal.h"

namespace sweep::store {
namespace {

namespace fs = std::filesystem;

StoreDependencies with_defaults(StoreDependencies dependencies) {
  if (!dependencies.network_filesystem) dependencies.network_filesystem = on_network_filesystem;
  if (!dependencies.now_unix_ns) dependencies.now_unix_ns = unix_ns_now;
  if (!dependencies.boot_unix_ns) dependencies.boot_unix_ns = boot_unix_ns;
  if (!dependencies.steady_s) dependencies.steady_s = steady_s;
  if (!dependencies.living_pid_start) dependencies.living_pid_start = living_pid_start;
  if (!dependencies.warn)
    dependencies.warn = [](const std::string& sentence) { fmt::print(stderr, "sweep: {}\n", sentence); };
  if (!dependencies.self) dependencies.self = this_process();
  return dependencies;
}

enum class Found { kNew, kExisting };

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
  std::error_code error;
  const auto kind = fs::status(path, error).type();
  const auto refuse = [&](const char* what) {
    return fail(
        ErrorKind::kUnreadable, path.string(),
        fmt::format("'{}' is {}, not a database; name a database file with --db", path.string(), what));
  };
  switch (kind) {
    case fs::file_type::regular:
      if (fs::file_size(path, error) == 0 && !error) return refuse("an empty file");
      return {};
    case fs::file_type::not_found:
      if (may_be_absent) return {};
      return fail(
          ErrorKind::kNotFound, path.string(),
          fmt::format("there is no database '{}'; `sweep run` makes one, or name another file with --db",
                      path.string()));
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
      return fail(fmt::format("'{}' cannot be looked at: {}", path.string(), error.message()));
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

// A new database gets its name once it is complete, so that others meet it whole or not at all, and a full
// disk leaves nothing. Whoever names it first has made it.
Expected<void> create(const fs::path& path, const StoreDependencies& dependencies, bool network) {
  const fs::path unfinished = fmt::format("{}.new-{}", path.string(), ::getpid());
  std::error_code error, ignored;
  for (const char* part : {"", "-wal", "-shm", "-journal"}) fs::remove(unfinished.string() + part, ignored);
  auto db = open_file(unfinished, path, Found::kNew, dependencies, network);
  const auto made = db ? Expected<void>() : tl::unexpected(db.error());
  if (db) db->reset();  // moves its log into the file
  if (made) fs::create_hard_link(unfinished, path, error);
  const bool no_links = error && error != std::errc::file_exists;
  if (no_links && !fs::exists(path, ignored)) fs::rename(unfinished, path, error);
  for (const char* part : {"", "-wal", "-shm", "-journal"}) fs::remove(unfinished.string() + part, ignored);
  if (!made || !error || fs::exists(path, ignored)) return made;
  return fail(fmt::format("database '{}' could not be created: {}", path.string(), error.message()));
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

Expected<std::unique_ptr<Db>> open_rolled_back(const fs::path& path, int busy_timeout_ms) {
  {
    auto writer = Db::open(path.string(), SQLITE_OPEN_READWRITE, busy_timeout_ms, path);
    if (!writer) return writer;
    if (sqlite3_db_readonly((*writer)->handle(), "main") == 1)
      return fail(
          ErrorKind::kUnreadable, path.string(),
          fmt::format(
              "'{}' was left in the middle of a write (its -journal is there), which must be undone "
              "before it is read; run this command once as a user who may write the file and its folder",
              path.string()));
    if (const auto read = (*writer)->pragma("schema_version"); !read)
      return tl::unexpected<Error>(read.error());
  }
  return Db::open(path.string(), SQLITE_OPEN_READONLY, busy_timeout_ms, path);
}

}  // namespace

// A write-ahead log needs its shared-memory file; where the folder cannot be written and no log is there, the
// file is read as it stands. A writer that was killed in a commit leaves a journal, which only one that may write
// rolls back.
Expected<std::unique_ptr<Db>> open_for_reading(const fs::path& path, int busy_timeout_ms) {
  SWEEP_TRY(check_path(path, false));
  auto db = Db::open(path.string(), SQLITE_OPEN_READONLY, busy_timeout_ms, path);
  if (!db || (*db)->pragma("schema_version")) return db;
  const int code = sqlite3_errcode((*db)->handle()) & 0xff;
  std::error_code ignored;
  const bool no_log_possible = code == SQLITE_CANTOPEN || code == SQLITE_READONLY;
  if (no_log_possible && fs::exists(path.string() + "-journal", ignored))
    return open_rolled_back(path, busy_timeout_ms);
  if (!no_log_possible || fs::exists(path.string() + "-wal", ignored))
    return tl::unexpected((*db)->explain(code));
  std::string name = "file:";
  for (const char c : fs::absolute(path).string())
    name += std::string_view("?#%").find(c) == std::string_view::npos
                ? std::string(1, c)
                : fmt::format("%{:02x}", static_cast<int>(c));
  return Db::open(name + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, busy_timeout_ms, path);
}

Expected<std::unique_ptr<Store>> Store::open(const fs::path& path, Mode mode) {
  return open(path, mode, StoreDependencies{});
}

Expected<std::unique_ptr<Store>> Store::open(const fs::path& path, Mode mode, StoreDependencies given) {
  SWEEP_TRY(check_path(path, mode == Mode::kReadWrite));
  StoreDependencies dependencies = with_defaults(std::move(given));
  const bool network = dependencies.network_filesystem(path);
  auto db = mode == Mode::kReadWrite ? open_writable(path, dependencies, network)
                                     : open_read_only(path, dependencies);
  if (!db) return tl::unexpected<Error>(db.error());
  Transaction work(**db, Transaction::kRead);
  auto selects = selects_for(work);
  auto read = work.commit(std::move(selects));
  if (!read) return tl::unexpected<Error>(read.error());
  Leases leases(dependencies, network);
  return std::make_unique<Store>(std::unique_ptr<StoreFile>(
      new StoreFile{std::move(*db), std::move(dependencies), network, std::move(*read), std::move(leases)}));
}

Store::Store(std::unique_ptr<StoreFile> file)
    : SweepBook(*file),
      SweepLease(*file),
      WorkQueue(*file),
      Reports(*file),
      Answers(*file),
      ProfileShelf(*file),
      owned_(std::move(file)) {}

Store::~Store() = default;

StoreFile::~StoreFile() {
  query_db.reset();
  if (sqlite3_db_readonly(db->handle(), "main") == 0) {
    if (const auto folded = fold_log(*db); !folded) dependencies.warn(folded.error().message);
    return;
  }
  const fs::path path = db->path();
  db.reset();
  fold_abandoned_log(path);
}

Expected<SweepRow> SweepBook::ensure_sweep(const SweepRow& wanted) {
  if (wanted.name.empty()) return fail("a sweep needs a name");
  Transaction work(*file_.db, Transaction::kWrite);
  const auto found = sweep_named(work, wanted.name);
  if (!found || !file_.leases.held_by_other(work, found->id)) {
    if (found) file_.leases.guard(work, found->id);
    SweepRow row = wanted;
    if (found)
      row.created_unix_ns = found->created_unix_ns;
    else if (!row.created_unix_ns)
      row.created_unix_ns = file_.leases.now();
    write_sweep(work, row);
  }
  auto stored = sweep_named(work, wanted.name);
  return work.commit(stored ? std::move(*stored) : SweepRow{});
}

Expected<SweepsOfFile> read_sweeps(const std::filesystem::path& path) {
  SweepsOfFile out;
  std::error_code ec;
  if (!std::filesystem::exists(path, ec)) return out;
  auto store = Store::open(path, Mode::kReadOnly);
  if (!store) return tl::unexpected<Error>(store.error());
  auto sweeps = (*store)->sweeps();
  if (!sweeps) return tl::unexpected<Error>(sweeps.error());
  std::ranges::sort(*sweeps, {}, &SweepRow::created_unix_ns);
  out.store = std::move(*store), out.sweeps = std::move(*sweeps);
  return out;
}

Expected<std::vector<SweepRow>> SweepBook::sweeps() {
  Transaction work(*file_.db, Transaction::kRead);
  auto all = all_sweeps(work);
  return work.commit(std::move(all));
}

Expected<SweepRow> SweepBook::find_sweep(const std::optional<std::string>& name) {
  const auto all = sweeps();
  if (!all) return tl::unexpected<Error>(all.error());
  if (all->empty())
    return fail(
        ErrorKind::kNotFound, "",
        fmt::format("database '{}' holds no sweep; `sweep run GRID` makes one", file_.db->path().string()));
  // Without a name: the latest one that was measured. A rehearsal is taken only by its name.
  const auto measured =
      std::find_if(all->rbegin(), all->rend(), [](const SweepRow& row) { return !is_rehearsal(row.name); });
  if (!name && measured != all->rend()) return *measured;
  if (!name && all->size() == 1) return all->front();  // it is meant
  if (!name)
    return fail(ErrorKind::kNotFound, "",
                fmt::format("database '{}' holds rehearsals only; name one, for example '{}'",
                            file_.db->path().string(), all->back().name));
  std::string list;
  for (const auto& row : *all) {
    if (row.name == *name) return row;
    list += (list.empty() ? "" : ", ") + row.name;
  }
  return fail(
      ErrorKind::kNotFound, *name,
      fmt::format("database '{}' holds no sweep '{}'; it holds: {}", file_.db->path().string(), *name, list));
}

// Who runs a sweep gives up what it holds rather than lose a result: other people's locks are worth a long
// wait.
constexpr int kHoldersPatience = 12;

Expected<std::optional<LeaseHolder>> SweepLease::take_lease(i64 sweep, const Claim& claim) {
  Transaction work(*file_.db, Transaction::kWrite);
  const auto other = file_.leases.take(work, sweep, claim);
  if (!other) {
    work.run("DELETE FROM stop_request WHERE sweep = ?", sweep);
    const Outcome lost[] = {Outcome::kNodeLost};
    reopen_entries(work, sweep, lost);
  }
  auto done = work.commit(other);
  if (done && !other) {
    file_.leases.committed(sweep, true);
    file_.db->wait_for_locks(kHoldersPatience * file_.dependencies.busy_timeout_ms);
  }
  return done;
}

bool SweepLease::lease_lost(i64 sweep) const {
  return file_.leases.lost(sweep);
}

Expected<std::optional<LeaseHolder>> SweepLease::lease(i64 sweep, const Claim& known) {
  Transaction work(*file_.db, Transaction::kRead);
  auto holder = file_.leases.holder(work, sweep, known);
  return work.commit(std::move(holder));
}

Expected<bool> SweepLease::is_leased(i64 sweep) {
  Transaction work(*file_.db, Transaction::kRead);
  const auto found = work.one<i64>("SELECT 1 FROM lease WHERE sweep = ?", sweep);
  return work.commit(found.has_value());
}

// Whoever wants the lease writes, and so waits for the end of this transaction.
Expected<void> SweepLease::while_held(i64 sweep, const std::function<Expected<void>()>& act) {
  Transaction work(*file_.db, Transaction::kWrite);
  file_.leases.require(work, sweep);
  if (work.failed()) return work.commit();
  auto done = act();
  if (auto closed = work.commit(); !closed) return closed;
  return done;
}

Expected<void> SweepLease::beat(i64 sweep) {
  const i64 before = sqlite3_total_changes64(file_.db->handle());
  Transaction work(*file_.db, Transaction::kWrite);
  file_.leases.beat(work, sweep);
  auto done = work.commit();
  // A beat is no progress: what was counted stands.
  if (file_.counted && file_.counted->own == before)
    file_.counted->own = sqlite3_total_changes64(file_.db->handle());
  return done;
}

Expected<void> SweepLease::release_lease(i64 sweep) {
  Transaction work(*file_.db, Transaction::kWrite);
  file_.leases.release(work, sweep);
  auto done = work.commit();
  if (done) file_.leases.committed(sweep, false);
  return done;
}

Expected<void> SweepLease::request_stop(i64 sweep, bool now) {
  Transaction work(*file_.db, Transaction::kWrite);
  work.run("INSERT OR REPLACE INTO stop_request(sweep, now, unix_ns) VALUES (?, ?, ?)", sweep, now,
           file_.leases.now());
  return work.commit();
}

Expected<std::optional<bool>> SweepLease::stop_requested(i64 sweep) {
  Transaction work(*file_.db, Transaction::kRead);
  auto now = work.one<bool>("SELECT now FROM stop_request WHERE sweep = ?", sweep);
  return work.commit(now);
}

Expected<void> SweepBook::add_event(i64 sweep, const std::string& kind, const std::string& text,
                                    std::optional<i64> attempt) {
  Transaction work(*file_.db, Transaction::kWrite);
  file_.leases.refuse_if_lost(work, sweep);
  add_event_row(work, sweep, file_.leases.now(), kind, text, attempt);
  return work.commit();
}

Expected<std::string> SweepBook::first_event_but(const std::string& kind) {
  Transaction work(*file_.db, Transaction::kRead);
  auto text = work.one<std::string>("SELECT text FROM event WHERE kind <> ? ORDER BY id LIMIT 1", kind);
  return work.commit(std::move(text).value_or(""));
}

}  // namespace sweep::store
