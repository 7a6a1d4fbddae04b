// Joining other databases: each is copied into a private temporary database (gone with this process, however
// it ends), upgraded there if need be, and merged in one transaction.
#include <fmt/format.h>

#include "base/fail.h"
#include "orchestrator/store/merge_rows.h"
#include "orchestrator/store/opening.h"
#include "orchestrator/store/store_file.h"
#include "orchestrator/store/upgrade.h"

namespace sweep::store {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 10;  // SQLite attaches no more

std::string schema_name(std::size_t i) {
  return fmt::format("merged{}", i);
}

// Sweeps of the other file that a living process runs. It is asked about on the file itself: a lease's holder
// may be on a host that shares its filesystem.
Expected<void> refuse_running(Db& db, const StoreDependencies& dependencies) {
  const fs::path& file = db.path();
  Leases leases(dependencies, dependencies.network_filesystem(file));
  Transaction work(db, Transaction::kRead);
  std::vector<std::pair<i64, std::string>> sweeps;
  {
    auto rows = work.rows("SELECT s.id, s.name FROM lease l JOIN sweep s ON s.id = l.sweep ORDER BY s.id");
    while (rows.next()) sweeps.emplace_back(rows.get<i64>(0), rows.get<std::string>(1));
  }
  for (const auto& [id, name] : sweeps)
    if (const auto holder = leases.holder(work, id))
      work.refuse(Error{fmt::format("sweep '{}' of '{}' is being run by process {} on host '{}'; let it end, "
                                    "or stop it with `sweep stop {} --db {}`, then merge",
                                    name, file.string(), holder->pid, holder->host, name, file.string()),
                        ErrorKind::kBusy, name});
  return work.commit();
}

// The pages are checked as `into` has them, so that the file itself is read once; errors name the file.
Expected<void> refuse_damaged(Db& into, const std::string& schema, const fs::path& file) {
  const auto damage = damage_of(into, schema);
  if (damage && damage->empty()) return {};
  if (!damage && damage.error().kind != ErrorKind::kUnreadable) return tl::unexpected<Error>(damage.error());
  return fail(ErrorKind::kUnreadable, file.string(),
              "'{0}' is damaged ({1}); restore a backup, or merge what `sqlite3 {0} .recover` saves",
              file.string(), damage ? *damage : "it cannot be read");
}

// The file's pages, in this program's version, as an attached schema of `into`. Error: somebody runs a sweep of it.
Expected<void> attach_copy(Db& into, const fs::path& file, const std::string& schema,
                           const StoreDependencies& dependencies) {
  auto from = open_for_reading(file, dependencies.busy_timeout_ms);
  if (!from) return tl::unexpected<Error>(from.error());
  const auto version = check_identity(**from, migrations());
  if (!version) return tl::unexpected<Error>(version.error());
  if (*version == 0) return fail("'{}' is an empty file, not a results database", file.string());
  SWEEP_TRY(refuse_running(**from, dependencies));
  if (*version < migrations().back().version) {
    auto copy = Db::open("", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, dependencies.busy_timeout_ms, file);
    if (!copy) return tl::unexpected<Error>(copy.error());
    SWEEP_TRY(copy_pages(**from, **copy, "main"));
    SWEEP_TRY(upgrade_copy(**copy, migrations()));
    from = std::move(copy);
  }
  SWEEP_TRY(into.execute(fmt::format("ATTACH '' AS {}", schema)));
  SWEEP_TRY(copy_pages(**from, into, schema.c_str()));
  return refuse_damaged(into, schema, file);
}

Expected<void> check_files(const fs::path& into, std::span<const fs::path> files) {
  if (files.size() > kMostFiles)
    return fail("{} files at once are too many; merge at most {} with one command", files.size(), kMostFiles);
  for (const auto& file : files) {
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored))
      return fail(ErrorKind::kNotFound, file.string(), "there is no database '{}' to merge", file.string());
    if (fs::equivalent(file, into, ignored))
      return fail(ErrorKind::kConflict, file.string(),
                  "'{}' is the database that is merged into; name another one", file.string());
  }
  return {};
}

}  // namespace

Expected<std::vector<MergeCounts>> SweepBook::merge(std::span<const fs::path> files) {
  SWEEP_TRY(check_files(file_.db->path(), files));
  std::size_t attached = 0;
  Expected<std::vector<MergeCounts>> answer = std::vector<MergeCounts>{};
  for (; answer && attached < files.size(); ++attached) {
    const auto ready = attach_copy(*file_.db, files[attached], schema_name(attached), file_.dependencies);
    if (!ready) answer = tl::unexpected<Error>(ready.error());
  }
  if (answer) {
    Transaction work(*file_.db, Transaction::kWrite);
    for (std::size_t i = 0; i < files.size() && !work.failed(); ++i) {
      check_mergeable(work, schema_name(i), files[i].string());
      for (const i64 sweep : shared_sweeps(work, schema_name(i))) file_.leases.guard(work, sweep);
      if (!work.failed())
        answer->push_back(merge_rows(work, schema_name(i), files[i].string(), file_.dependencies.decide_trial,
                                     file_.leases.now()));
    }
    if (auto done = work.commit(); !done) answer = tl::unexpected<Error>(done.error());
  }
  file_.db->forget_statements();  // they hold the attached copies
  for (std::size_t i = 0; i < attached; ++i)
    if (auto gone = file_.db->execute("DETACH " + schema_name(i)); !gone && answer)
      answer = tl::unexpected<Error>(gone.error());
  return answer;
}

}  // namespace sweep::store
