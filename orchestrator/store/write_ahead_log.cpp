#include <fmt/format.h>

#include <algorithm>

#include "base/fail.h"
#include "orchestrator/store/opening.h"

namespace sweep::store {
namespace {

constexpr int kFoldPatienceMs = 5000;

}  // namespace

bool keeps_log(Db& db) {
  constexpr std::size_t kWriteVersion = 18, kReadVersion = 19;
  constexpr unsigned char kLog = 2;
  const auto header = db.header();
  return header && (*header)[kWriteVersion] == kLog && (*header)[kReadVersion] == kLog;
}

int checkpoint(Db& db) {
  return sqlite3_wal_checkpoint_v2(db.handle(), "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
}

Expected<void> fold_log(Db& db) {
  db.wait_for_locks(std::min(db.lock_patience_ms(), kFoldPatienceMs));
  const int code = checkpoint(db);
  if (code == SQLITE_OK) return {};
  const auto file = db.file().string();
  const bool busy = (code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED;
  return fail(ErrorKind::kBusy, db.path().string(),
              "what was stored last is in '{}-wal', not yet in '{}' ({}); nothing is lost, but keep the two "
              "files together: the next sweep command that can joins them",
              file, file, busy ? "another process reads the file" : db.explain(code).message);
}

void fold_abandoned_log(const std::filesystem::path& database) {
  std::error_code ignored;
  if (!std::filesystem::exists(database.string() + "-wal", ignored)) return;
  // SQLite folds the log when the last connection is closed, if that one may write and has used the file.
  if (auto db = Db::open(database.string(), SQLITE_OPEN_READWRITE, 0, database))
    (void)(*db)->pragma("schema_version");
}

}  // namespace sweep::store
