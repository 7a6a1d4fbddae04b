// Opening a database file: what is at its path, its journal, its version; a new one is made whole or not at all.
// Private to store/.
#pragma once
#include <filesystem>
#include <memory>
#include <string_view>

#include "orchestrator/store/db.h"
#include "orchestrator/store/store.h"

namespace sweep::store {

// REQUIRES: no function of `dependencies` is empty.
Expected<std::unique_ptr<Db>> open_database(const std::filesystem::path&, Mode, const StoreDependencies&,
                                            bool network);

// A connection that cannot write, whatever the SQL.
Expected<std::unique_ptr<Db>> open_for_reading(const std::filesystem::path&, int busy_timeout_ms);

// Whether it is read as it stood when it was opened: what is written later is not seen.
bool is_read_as_it_stood(Db&);

// Removes the unfinished databases FILE + `suffix` + PID that killed processes left beside the file.
void remove_left_behind(const std::filesystem::path& file, std::string_view suffix);

// Removes an unfinished database and what SQLite keeps beside it.
void remove_parts(const std::filesystem::path&);

// The write-ahead log: SQLite stores what is written in FILE-wal first. These copy it into FILE itself, so that
// a copy of that one file holds everything.

// Whether the file says that its writers use a log; without one they use a rollback journal.
bool keeps_log(Db&);

// Copies the log into the file and empties it; SQLite's result code. When a connection is closed SQLite does so too, and
// tells nobody if it fails.
int checkpoint(Db&);

// The same with a sentence for people. It waits for a process that reads an older state, but not for
// long. Error: the log still holds what was stored last. REQUIRES: no transaction of this connection is open.
Expected<void> fold_log(Db&);

// Serves one who only reads, after its connection was closed: a writer that was killed leaves a log behind, and a
// reader that leaves last cannot fold it. Does nothing while another process has the file open.
void fold_abandoned_log(const std::filesystem::path& database);

}  // namespace sweep::store
