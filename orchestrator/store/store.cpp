// Sweeps, leases and stop requests of an open database.
#include <fmt/format.h>

#include <algorithm>

#include "base/fail.h"
#include "base/time.h"
#include "orchestrator/store/file_at_path.h"
#include "orchestrator/store/opening.h"
#include "orchestrator/store/settle.h"
#include "orchestrator/store/store_file.h"
#include "orchestrator/store/sweep_rows.h"
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

}  // namespace

Expected<std::unique_ptr<Store>> Store::open(const fs::path& path, Mode mode) {
  return open(path, mode, StoreDependencies{});
}

Expected<std::unique_ptr<Store>> Store::open(const fs::path& path, Mode mode, StoreDependencies given) {
  StoreDependencies dependencies = with_defaults(std::move(given));
  const bool network = dependencies.network_filesystem(path);
  auto db = open_database(path, mode, dependencies, network);
  if (!db) return tl::unexpected<Error>(db.error());
  Transaction work(**db, Transaction::kRead);
  auto selects = selects_for(work);
  auto read = work.commit(std::move(selects));
  if (!read) return tl::unexpected<Error>(read.error());
  Leases leases(dependencies, network);
  return std::make_unique<Store>(std::unique_ptr<StoreFile>(new StoreFile{
      std::move(*db), std::move(dependencies), network, std::move(*read), std::move(leases), file_at(path)}));
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
  const fs::path path = db->file();
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
    return fail(ErrorKind::kNotFound, "", "database '{}' holds no sweep; `sweep run GRID` makes one",
                file_.db->path().string());
  // Without a name the latest one that was measured is taken, a rehearsal only by its name.
  const auto measured =
      std::find_if(all->rbegin(), all->rend(), [](const SweepRow& row) { return !is_rehearsal(row.name); });
  if (!name && measured != all->rend()) return *measured;
  if (!name && all->size() == 1) return all->front();  // it is meant
  if (!name)
    return fail(ErrorKind::kNotFound, "", "database '{}' holds rehearsals only; name one, for example '{}'",
                file_.db->path().string(), all->back().name);
  std::string list;
  for (const auto& row : *all) {
    if (row.name == *name) return row;
    list += (list.empty() ? "" : ", ") + row.name;
  }
  return fail(ErrorKind::kNotFound, *name, "database '{}' holds no sweep '{}'; it holds: {}",
              file_.db->path().string(), *name, list);
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
  SWEEP_TRY(check_still_at_path(file_));
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
  return done ? check_still_at_path(file_) : done;
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

Expected<void> SweepBook::add_event(i64 sweep, EventKind kind, const std::string& text,
                                    std::optional<i64> attempt) {
  Transaction work(*file_.db, Transaction::kWrite);
  file_.leases.refuse_if_lost(work, sweep);
  add_event_row(work, sweep, file_.leases.now(), kind, text, attempt);
  return work.commit();
}

Expected<std::string> SweepBook::first_event_but(EventKind kind) {
  Transaction work(*file_.db, Transaction::kRead);
  auto text =
      work.one<std::string>("SELECT text FROM event WHERE kind <> ? ORDER BY id LIMIT 1", to_string(kind));
  return work.commit(std::move(text).value_or(""));
}

}  // namespace sweep::store
