// The write-ahead log: SQLite stores what is written in FILE-wal first. These copy it into FILE itself, so that
// a copy of that one file holds everything.
#pragma once
#include <filesystem>

#include "orchestrator/store/db.h"

namespace sweep::store {

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
