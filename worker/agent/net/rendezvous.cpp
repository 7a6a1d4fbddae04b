#include "worker/agent/net/rendezvous.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace sweep::agent {

namespace fs = std::filesystem;

namespace {
constexpr const char* kOwner = ".owner";

// A new lock file, locked before it has its name: who finds one that is free knows that its owner is dead.
int own(const fs::path& root) {
  const fs::path file = root / kOwner, fresh = root / fmt::format("{}.{}", kOwner, ::getpid());
  const int fd = ::open(fresh.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return -1;
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::rename(fresh.c_str(), file.c_str()) == 0) return fd;
  ::unlink(fresh.c_str());
  ::close(fd);
  return -1;
}

bool owner_is_dead(const fs::path& root) {
  const int fd = ::open((root / kOwner).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  const bool is_free = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  ::close(fd);
  return is_free;
}

}  // namespace

bool private_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return false;
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
         (info.st_mode & 0077) == 0;
}

RendezvousFolder::RendezvousFolder(fs::path root) : root_(std::move(root)) {
  if (private_folder(root_.parent_path()) && private_folder(root_)) lock_ = own(root_);
}

RendezvousFolder::~RendezvousFolder() {
  std::error_code ec;
  fs::remove_all(root_, ec);
  if (lock_ >= 0) ::close(lock_);
}

i64 remove_dead_rendezvous(const fs::path& home) {
  i64 removed = 0;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(home, ec)) {
    struct stat info {};
    if (::lstat(entry.path().c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() ||
        !owner_is_dead(entry.path()))
      continue;
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
    ++removed;
  }
  return removed;
}

}  // namespace sweep::agent
