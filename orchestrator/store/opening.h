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

}  // namespace sweep::store
