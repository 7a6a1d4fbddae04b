#include "orchestrator/store/upgrade.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/fail.h"
#include "orchestrator/store/columns.h"

namespace sweep::store {
namespace {

Expected<void> back_up(Db& db, i64 version) {
  const std::string target = fmt::format("{}.v{}.bak", db.path().string(), version);
  const std::string unfinished = target + ".part";
  std::error_code ignored;
  std::filesystem::remove(unfinished, ignored);
  auto copy = Db::open(unfinished, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, 1000, unfinished);
  if (!copy) return tl::unexpected<Error>(copy.error());
  if (auto copied = copy_pages(db, **copy, "main"); !copied) {
    copy->reset();
    std::filesystem::remove(unfinished, ignored);
    return tl::unexpected(
        retold(copied.error(),
               fmt::format("the backup before the upgrade of '{}' failed, so it was not upgraded: {}",
                           db.path().string(), copied.error().message)));
  }
  copy->reset();
  std::error_code error;
  std::filesystem::rename(unfinished, target, error);
  if (error) return fail("the backup '{}' could not be put in place: {}", target, error.message());
  return {};
}

void migrate(Transaction& work, std::span<const Migration> steps, i64 from) {
  for (const auto& step : steps) {
    if (step.version <= from || work.failed()) continue;
    if (auto done = work.db().execute(with_columns(std::string(step.sql))); !done)
      work.refuse(retold(done.error(), fmt::format("upgrade to version {} failed, the file is unchanged: {}",
                                                   step.version, done.error().message)));
  }
  if (work.failed()) return;
  auto marked = work.db().execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}",
                                              kApplicationId, steps.back().version));
  if (!marked) work.refuse(marked.error());
}

}  // namespace

std::string not_ours(const std::filesystem::path& path) {
  return fmt::format("'{}' is a SQLite database, but not one of sweep's; name another file with --db",
                     path.string());
}

Expected<i64> check_identity(Db& db, std::span<const Migration> steps) {
  SWEEP_GET(const auto application, db.pragma("application_id"));
  SWEEP_GET(const i64 version, db.pragma("user_version"));
  SWEEP_GET(const auto schema, db.pragma("schema_version"));
  if (application == 0 && version == 0 && schema == 0) return 0;
  if (application == kUnreleasedId)
    return fail(ErrorKind::kUnsupported, db.path().string(),
                "database '{0}' was written before the first release, and nothing reads its tables now; it "
                "is left as it is. Export its sweeps with the sweep that wrote it (`sweep export csv --db "
                "{0}`) and bring them here with `sweep import`, or name a new file with --db",
                db.path().string());
  if (application != kApplicationId)
    return fail(ErrorKind::kUnreadable, db.path().string(), not_ours(db.path()));
  const i64 ours = steps.back().version;
  if (version < 0)
    return fail(ErrorKind::kUnreadable, db.path().string(),
                "database '{}' has version {}, which no sweep writes: the file was altered or is damaged; "
                "take a backup of it, or another file with --db",
                db.path().string(), version);
  if (version > ours)
    return fail(ErrorKind::kUnsupported, db.path().string(),
                "database '{}' has version {}, this sweep knows versions up to {}; use the newer sweep that "
                "wrote it, or another file with --db",
                db.path().string(), version, ours);
  return version;
}

Expected<void> copy_pages(Db& from, Db& to, const char* to_schema) {
  sqlite3_backup* backup = sqlite3_backup_init(to.handle(), to_schema, from.handle(), "main");
  const int stepped = backup ? sqlite3_backup_step(backup, -1) : SQLITE_ERROR;
  const int finished = backup ? sqlite3_backup_finish(backup) : SQLITE_ERROR;
  if (stepped == SQLITE_DONE && finished == SQLITE_OK) return {};
  return tl::unexpected(to.explain(stepped != SQLITE_DONE ? stepped : finished));
}

Expected<std::string> damage_of(Db& db, std::string_view schema) {
  Transaction work(db, Transaction::kRead);
  const auto found = work.one<std::string>("SELECT quick_check FROM pragma_quick_check(1, ?)", schema);
  return work.commit(found == "ok" ? std::string() : found.value_or("it cannot be read"));
}

Expected<void> upgrade_copy(Db& db, std::span<const Migration> steps) {
  Transaction work(db, Transaction::kWrite);
  if (work.failed()) return work.commit();
  const auto now = check_identity(db, steps);  // another process may have been faster
  if (!now) return tl::unexpected<Error>(now.error());
  if (*now < steps.back().version) migrate(work, steps, *now);
  complete_columns(work);
  return work.commit();
}

Expected<void> bring_up_to_date(Db& db, std::span<const Migration> steps) {
  const auto before = check_identity(db, steps);
  if (!before) return tl::unexpected<Error>(before.error());
  const i64 ours = steps.back().version;
  if (*before > 0 && *before < ours)
    if (auto saved = back_up(db, *before); !saved) return saved;
  return upgrade_copy(db, steps);
}

}  // namespace sweep::store
