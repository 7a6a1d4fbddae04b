#include "orchestrator/store/file_at_path.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/store/opening.h"
#include "orchestrator/store/store_file.h"

namespace sweep::store {
namespace {

// Whether a file that got shorter has fewer pages than its header says: after a VACUUM it has not.
bool lacks_pages(Db& db, long bytes) {
  const auto header = db.header();
  if (!header) return true;
  const auto number = [&](std::size_t at, std::size_t length) {  // big-endian
    long out = 0;
    for (std::size_t i = at; i < at + length; ++i) out = 256 * out + (*header)[i];
    return out;
  };
  const long page = number(16, 2) == 1 ? 65536 : number(16, 2);
  return page == 0 || number(28, 4) * page > bytes;
}

// Why the path does not name the open file any more; null: it does.
const char* change_of(StoreFile& file, const FileAtPath& now) {
  if (now.id == FileAtPath{}.id) return "removed";
  if (now.id != file.at_path.id) return "replaced by another file";
  if (now.bytes < file.at_path.bytes && lacks_pages(*file.db, now.bytes)) return "cut short";
  file.at_path.bytes = now.bytes;
  return nullptr;
}

}  // namespace

FileAtPath file_at(const std::filesystem::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  constexpr long kNsPerSecond = 1'000'000'000;
  return {{found.st_dev, found.st_ino},
          found.st_size,
          found.st_mtim.tv_sec * kNsPerSecond + found.st_mtim.tv_nsec};
}

Expected<void> check_still_at_path(StoreFile& file) {
  if (file.at_path.gone) return tl::unexpected(*file.at_path.gone);
  const auto& path = file.db->path();
  const auto now = file_at(path);
  const char* const change = change_of(file, now);
  if (change == nullptr) return {};
  const std::string rescued = fmt::format("{}.rescued-{}", path.string(), ::getpid());
  auto saved = SweepBook(file).back_up(rescued, Damaged::kKept);
  // A new file of this name would be read together with the log of the old one.
  std::error_code ignored;
  if (now.id == FileAtPath{}.id && saved)
    for (const char* part : {"-wal", "-shm"})
      std::filesystem::remove(file.db->file().string() + part, ignored);
  file.at_path.gone =
      Error{fmt::format(
                "database '{}' was {} while this run used it; {}", path.string(), change,
                saved ? fmt::format("all that was stored is in '{0}': give it a name, and go on with `sweep "
                                    "resume --db` of that name",
                                    rescued)
                      : "what was stored could not be saved: " + saved.error().message),
            ErrorKind::kUnwritable, path.string()};
  return tl::unexpected(*file.at_path.gone);
}

}  // namespace sweep::store
