#include "worker/phantom/nccl_segment.h"

#include <sys/mman.h>
#include <unistd.h>

#include <set>

#include "worker/phantom/bell.h"
#include "worker/phantom/shared_file.h"

namespace sweep::phantom {
namespace {

constexpr std::size_t kHead = 8192;
static_assert(sizeof(Shared) <= kHead);

}  // namespace

std::unique_ptr<Segment> Segment::join(const std::string& name, int ranks, int rank, int device) {
  std::unique_ptr<Segment> out(new Segment);
  out->path_ = shared_prefix() + "nccl-" + name;
  out->ranks_ = ranks;
  out->rank_ = rank;
  const auto n = static_cast<std::size_t>(ranks);
  out->bytes_ = kHead + n * sizeof(Member) + n * n * sizeof(Lane);
  const SharedFile file = open_shared(out->path_, out->bytes_);
  out->fd_ = file.fd;
  if (file.at == nullptr) return nullptr;
  auto* base = static_cast<std::byte*>(file.at);
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
  for (int rank = 0; rank < ranks_; ++rank)
    if (members_[rank].joined != 0) nodes.insert(members_[rank].node);
  return static_cast<int>(nodes.size());
}

}  // namespace sweep::phantom
