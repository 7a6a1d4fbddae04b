#include "worker/phantom/shared_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "worker/phantom/description.h"

namespace sweep::phantom {
namespace {

// The byte that every process with the file open holds, shared; the kernel lets go when the process ends.
struct flock held_byte(short kind) {
  struct flock range {};
  range.l_type = kind;
  range.l_whence = SEEK_SET;
  range.l_start = 1 << 20;
  range.l_len = 1;
  return range;
}

}  // namespace

std::string shared_prefix() {
  if (const char* folder = std::getenv("SWEEP_PHANTOM_SHARED")) return std::string(folder) + "/";
  return "/dev/shm/sweep-phantom-" + std::to_string(::geteuid()) + "-";
}

SharedFile open_shared(const std::string& path, std::size_t bytes) {
  SharedFile out;
  for (bool kept = false; !kept;) {
    out.fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (out.fd < 0 || ::ftruncate(out.fd, static_cast<off_t>(bytes)) != 0) break;
    auto range = held_byte(F_RDLCK);
    (void)::fcntl(out.fd, F_OFD_SETLK, &range);
    struct stat now {};
    kept =
        ::fstat(out.fd, &now) != 0 || now.st_nlink > 0;  // else it was taken for left over before it was held
    if (!kept) ::close(out.fd);
    if (!kept) continue;
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, out.fd, 0);
    if (at != MAP_FAILED) out.at = at;
  }
  if (out.at == nullptr) say("the shared file " + path + " cannot be made: " + std::strerror(errno));
  return out;
}

int reopened(int fd) {
  const int own = ::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDWR | O_CLOEXEC);
  auto range = held_byte(F_RDLCK);
  if (own >= 0) (void)::fcntl(own, F_OFD_SETLK, &range);
  return own;
}

void remove_left_over(const std::string& kind) {
  const std::string prefix = shared_prefix() + kind;
  const std::string folder = prefix.substr(0, prefix.rfind('/') + 1);
  DIR* entries = ::opendir(folder.c_str());
  if (entries == nullptr) return;
  while (const dirent* entry = ::readdir(entries)) {
    const std::string path = folder + entry->d_name;
    if (path.rfind(prefix, 0) != 0) continue;
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) continue;
    auto range = held_byte(F_WRLCK);
    if (::fcntl(fd, F_OFD_GETLK, &range) == 0 && range.l_type == F_UNLCK) ::unlink(path.c_str());
    ::close(fd);
  }
  ::closedir(entries);
}

}  // namespace sweep::phantom
