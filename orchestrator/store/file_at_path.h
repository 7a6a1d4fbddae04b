// Whether an open database is still the file that its path names, in its whole length. SQLite goes on writing into a file
// that was removed or replaced, and what it writes there ends with the process; of one that was cut short it reads the
// pages that it still holds in memory. Private to store/.
#pragma once
#include <filesystem>
#include <optional>
#include <utility>

#include "base/expected.h"

namespace sweep::store {

struct StoreFile;

struct FileAtPath {
  std::pair<unsigned long, unsigned long> id{};  // device and inode
  long bytes = 0, written_ns = 0;                // its length and its last change, when it was last looked at
  std::optional<Error> gone{};                   // once it was found to be gone
};
FileAtPath file_at(const std::filesystem::path&);

// Error: the path names no file, another one, or one that was cut short. What is stored is then copied to
// PATH.rescued-PID. With a rollback journal SQLite looks itself before it writes; with a write-ahead log it does not.
Expected<void> check_still_at_path(StoreFile&);

}  // namespace sweep::store
