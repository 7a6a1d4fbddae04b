#include "orchestrator/driver/spool_root.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/expected.h"
#include "base/files.h"
#include "orchestrator/store/db.h"

namespace sweep::driver {
namespace {

namespace fs = std::filesystem;
using Stat = struct stat;

// The owner of the database counts too: on some shared file systems what root makes belongs to nobody.
bool is_trusted(const Stat& file, const fs::path& db) {
  Stat owner{};
  return file.st_uid == ::geteuid() || (::stat(db.c_str(), &owner) == 0 && file.st_uid == owner.st_uid);
}

tl::unexpected<Error> unsafe(const fs::path& root, const std::string& what) {
  return fail(
      ErrorKind::kRefused, root.string(),
      fmt::format("the spool folder {} {}: who can write there can give orders to the agents. Remove it if "
                  "it is not yours, or name a database in a folder of your own with --db",
                  root.string(), what));
}

}  // namespace

fs::path spool_root_of(const fs::path& db) {
  return fs::absolute(store::resolved(db)).string() + ".spool";  // through a link it is the same database
}

Expected<void> prepare_spool_root(const fs::path& root, const fs::path& db) {
  Stat entry{};
  if (::lstat(root.c_str(), &entry) != 0) {
    std::error_code ignored;
    fs::create_directories(root.parent_path(), ignored);
    if (::mkdir(root.c_str(), 0775) != 0) return file_error("the spool folder cannot be made", root);
    return {};
  }
  if (!is_trusted(entry, db)) return unsafe(root, fmt::format("belongs to user {}", entry.st_uid));
  Stat folder{};
  if (::stat(root.c_str(), &folder) != 0 || !S_ISDIR(folder.st_mode)) return unsafe(root, "is no folder");
  if (!is_trusted(folder, db))
    return unsafe(root, fmt::format("is a link to a folder of user {}", folder.st_uid));
  if ((folder.st_mode & S_IWOTH) != 0)
    return unsafe(root, "can be written by every user (chmod o-w mends it)");
  return {};
}

}  // namespace sweep::driver
