#include "worker/phantom/nccl_segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "worker/phantom/bell.h"
#include "worker/phantom/node.h"

namespace sweep::phantom {
namespace {

constexpr std::size_t kHead = 8192;
static_assert(sizeof(Shared) <= kHead);

// Held, shared, on the first byte by every process that has the file open: what nobody holds is left over.
void hold(int fd) {
  struct flock range {};
  range.l_type = F_RDLCK;
  range.l_whence = SEEK_SET;
  range.l_len = 1;
  (void)::fcntl(fd, F_OFD_SETLK, &range);
}

}  // namespace

// The file, held; again where somebody took it for left over before it was held.
bool Segment::open() {
  for (;;) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd_ < 0 || ::ftruncate(fd_, static_cast<off_t>(bytes_)) != 0) return false;
    hold(fd_);
    struct stat now {};
    if (::fstat(fd_, &now) != 0 || now.st_nlink > 0) return true;
    ::close(fd_);
  }
}

std::unique_ptr<Segment> Segment::join(const std::string& name, int ranks, int rank, int device) {
  std::unique_ptr<Segment> out(new Segment);
  out->path_ = shared_prefix() + "nccl-" + name;
  out->ranks_ = ranks;
  out->rank_ = rank;
  const auto n = static_cast<std::size_t>(ranks);
  out->bytes_ = kHead + n * sizeof(Member) + n * n * sizeof(Lane);
  const int flags = MAP_SHARED | MAP_NORESERVE;
  void* at =
      out->open() ? ::mmap(nullptr, out->bytes_, PROT_READ | PROT_WRITE, flags, out->fd_, 0) : MAP_FAILED;
  if (at == MAP_FAILED) {
    say("the communicator's file " + out->path_ + " cannot be made: " + std::strerror(errno));
    return nullptr;
  }
  auto* base = static_cast<std::byte*>(at);
  out->shared_ = reinterpret_cast<Shared*>(base);
  out->members_ = reinterpret_cast<Member*>(base + kHead);
  out->lanes_ = reinterpret_cast<Lane*>(base + kHead + n * sizeof(Member));
  Member& me = out->members_[rank];
  me.bell = Bell::mine().number();
  me.pid = ::getpid();
  me.device = device;
  me.node = std::hash<std::string>()(description().node);
  me.joined = 1;
  out->ring_all();
  return out;
}

Segment::~Segment() {
  if (shared_ != nullptr) ::munmap(shared_, bytes_);
  if (fd_ >= 0) ::close(fd_);
}

bool Segment::complete() const {
  if (complete_) return true;
  for (int rank = 0; rank < ranks_; ++rank)
    if (members_[rank].joined == 0) return false;
  ::unlink(path_.c_str());
  complete_ = true;
  return true;
}

Lane& Segment::lane(int from, int to) const {
  return lanes_[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) +
                static_cast<std::size_t>(to)];
}

void Segment::ring(int rank) const {
  if (members_[rank].joined != 0 && rank != rank_) Bell::ring(members_[rank].bell);
}

void Segment::ring_all() const {
  for (int rank = 0; rank < ranks_; ++rank) ring(rank);
}

int Segment::nodes() const {
  std::set<std::uint64_t> nodes;
  for (int rank = 0; rank < ranks_; ++rank) nodes.insert(members_[rank].node);
  return static_cast<int>(nodes.size());
}

void Segment::remove_left_over() {
  DIR* folder = ::opendir("/dev/shm");
  if (folder == nullptr) return;
  const std::string prefix = shared_prefix().substr(std::strlen("/dev/shm/")) + "nccl-";
  while (const dirent* entry = ::readdir(folder)) {
    const std::string path = "/dev/shm/" + std::string(entry->d_name);
    if (std::string(entry->d_name).rfind(prefix, 0) != 0) continue;
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) continue;
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_len = 1;
    if (::fcntl(fd, F_OFD_GETLK, &range) == 0 && range.l_type == F_UNLCK) ::unlink(path.c_str());
    ::close(fd);
  }
  ::closedir(folder);
}

}  // namespace sweep::phantom
