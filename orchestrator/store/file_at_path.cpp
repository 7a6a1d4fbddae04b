#include "orchestrator/store/file_at_path.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/store/store_file.h"

namespace sweep::store {

FileAtPath file_at(const std::filesystem::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  return {{found.st_dev, found.st_ino}};
}

Expected<void> check_still_at_path(StoreFile& file) {
  if (file.at_path.gone) return tl::unexpected(*file.at_path.gone);
  const auto& path = file.db->path();
  const auto now = file_at(path).id;
  if (now == file.at_path.id) return {};
  const bool removed = now == FileAtPath{}.id;
  const std::string rescued = fmt::format("{}.rescued-{}", path.string(), ::getpid());
  const auto saved = SweepBook(file).back_up(rescued);
  // A new file of this name would be read together with the log of the old one.
  std::error_code ignored;
  if (removed && saved)
    for (const char* part : {"-wal", "-shm"}) std::filesystem::remove(path.string() + part, ignored);
  file.at_path.gone =
      Error{fmt::format(
                "database '{}' was {} while this run used it; {}", path.string(),
                removed ? "removed" : "replaced by another file",
                saved ? fmt::format("all that was stored is in '{0}': give it a name, and go on with `sweep "
                                    "resume --db` of that name",
                                    rescued)
                      : "what was stored could not be saved: " + saved.error().message),
            ErrorKind::kUnwritable, path.string()};
  return tl::unexpected(*file.at_path.gone);
}

}  // namespace sweep::store
