#include "bench_kernels/comm/shm_segment.h"

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <torch/csrc/distributed/c10d/exception.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

namespace sweep::comm {
namespace {

constexpr std::size_t kLargestPiece = 256 << 10;
constexpr std::size_t kLargestRing = 64 << 20;  // all ranks' areas together: fits the /dev/shm of a container
constexpr auto kLookAround = std::chrono::milliseconds(20);
constexpr int kSpins = 4000;  // some tens of microseconds: about what a futex sleep and wake-up cost

std::size_t rounded_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

// Decided by the largest group this process has ever joined: its ranks all compute, also while two of them meet.
std::atomic<bool> may_spin{true};

void note_group(int ranks, int processors) {
  static std::mutex mutex;
  static int largest = 0;
  const std::scoped_lock lock(mutex);
  if (ranks < largest) return;
  largest = ranks;
  may_spin.store(spins_for(ranks, processors), std::memory_order_relaxed);
}

int spins() {
  return may_spin.load(std::memory_order_relaxed) ? kSpins : 0;
}

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

struct alignas(64) ShmSegment::Head {
  std::atomic<std::uint32_t> aborted_by;  // rank + 1; 0: none
};

ShmSegment::ShmSegment(const std::string& path, int rank, int world, std::chrono::milliseconds timeout)
    : path_(path), rank_(rank), world_(world), pidfds_(world, -1), mail_reserved_(world, false) {
  const std::size_t ranks = world;
  piece_ =
      std::min(kLargestPiece, std::max<std::size_t>(4096, kLargestRing / (kSlots * ranks) / 4096 * 4096));
  slots_offset_ = rounded_up(sizeof(Head) + ranks * sizeof(Line) + ranks * ranks * sizeof(Mailbox), 4096);
  mail_offset_ = slots_offset_ + kSlots * ranks * piece_;
  size_ = mail_offset_ + ranks * ranks * kMail * kMailPiece;

  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  TORCH_CHECK_WITH(DistBackendError, fd_ >= 0, "cannot open shared segment ", path, ": ",
                   std::strerror(errno));
  // Every rank sets the same size, so it does not matter who is first.
  TORCH_CHECK_WITH(DistBackendError, ftruncate(fd_, static_cast<off_t>(size_)) == 0,
                   "cannot size shared segment ", path, ": ", std::strerror(errno));
  reserve(0, slots_offset_);
  for (std::uint32_t slot = 0; slot < kSlots; ++slot)
    reserve(slots_offset_ + (slot * ranks + rank) * piece_, piece_);
  void* mapped = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  TORCH_CHECK_WITH(DistBackendError, mapped != MAP_FAILED, "cannot map shared segment ", path, ": ",
                   std::strerror(errno));
  base_ = static_cast<std::byte*>(mapped);
  head_ = reinterpret_cast<Head*>(base_);
  lines_ = reinterpret_cast<Line*>(base_ + sizeof(Head));
  mailboxes_ = reinterpret_cast<Mailbox*>(base_ + sizeof(Head) + ranks * sizeof(Line));
  join(timeout);
  note_group(world, processors());
}

ShmSegment::~ShmSegment() {
  for (const int pidfd : pidfds_) {
    if (pidfd >= 0) close(pidfd);
  }
  if (base_ != nullptr) munmap(base_, size_);
  if (fd_ >= 0) close(fd_);
}

// Pages are taken now: touching a page that a full file system cannot give would end the process by SIGBUS.
void ShmSegment::reserve(std::size_t offset, std::size_t bytes) const {
  const int error = posix_fallocate(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  TORCH_CHECK_WITH(DistBackendError, error == 0, "no room for ", bytes, " bytes of shared segment ", path_,
                   ": ", std::strerror(error), ". Free the file system it lies on, or use backend: gloo.");
}

void ShmSegment::join(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  line(rank_).pid.store(static_cast<std::uint32_t>(getpid()));
  publish();
  for (int peer = 0; peer < world_; ++peer) {
    if (peer == rank_) continue;
    const auto missing = [&](int other) { return line(other).pid.load() == 0; };
    for (std::uint32_t seen = line(peer).signal.load(); missing(peer); seen = line(peer).signal.load()) {
      sleep_on(peer, seen, missing, kLookAround);
      if (missing(peer) && std::chrono::steady_clock::now() > deadline) {
        C10D_THROW_ERROR(TimeoutError, "rank ", peer, " did not join within ", timeout.count(), " ms (",
                         path_, ")");
      }
    }
    pidfds_[peer] = static_cast<int>(syscall(SYS_pidfd_open, line(peer).pid.load(), 0));
    TORCH_CHECK_WITH(DistBackendError, pidfds_[peer] >= 0 || errno != ESRCH, "rank ", peer,
                     " died while joining");
  }
}

// The number of processors that the ranks of the group may use together: each may be kept to cores of its own, or all
// of them to the same ones.
int ShmSegment::processors() const {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int rank = 0; rank < world_; ++rank) {
    cpu_set_t theirs;
    if (sched_getaffinity(static_cast<pid_t>(line(rank).pid.load()), sizeof theirs, &theirs) == 0)
      CPU_OR(&all, &all, &theirs);
  }
  return CPU_COUNT(&all);
}

std::byte* ShmSegment::area(std::uint32_t piece, int rank) const {
  return base_ + slots_offset_ + (std::size_t{piece % kSlots} * world_ + rank) * piece_;
}

std::byte* ShmSegment::mail(int from, int to, std::uint32_t piece) const {
  const std::size_t box = std::size_t(from) * world_ + to;
  return base_ + mail_offset_ + (box * kMail + piece % kMail) * kMailPiece;
}

void ShmSegment::reserve_mail(int to) {
  if (mail_reserved_[to]) return;
  reserve(static_cast<std::size_t>(mail(rank_, to, 0) - base_), kMail * kMailPiece);
  mail_reserved_[to] = true;
}

void ShmSegment::publish() {
  Line& mine = line(rank_);
  mine.signal.fetch_add(1);
  if (mine.sleepers.load() > 0) syscall(SYS_futex, &mine.signal, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

void ShmSegment::sleep_on(int peer, std::uint32_t seen, const WaitsFor& waits_for,
                          std::chrono::milliseconds at_most) {
  Line& theirs = line(peer);
  for (int i = spins(); i > 0; --i) {
    if (theirs.signal.load(std::memory_order_acquire) != seen) return;
    pause_briefly();
  }
  const auto wait = std::min(at_most, kLookAround);
  const timespec relative{0, std::chrono::nanoseconds(wait).count()};
  theirs.sleepers.fetch_add(1);
  const long rc = syscall(SYS_futex, &theirs.signal, FUTEX_WAIT, seen, &relative, nullptr, 0);
  const bool timed_out = rc != 0 && errno == ETIMEDOUT;
  theirs.sleepers.fetch_sub(1);
  if (timed_out) check_peers(waits_for);
}

void ShmSegment::check_peers(const WaitsFor& waits_for) const {
  for (int peer = 0; peer < world_; ++peer) {
    if (peer == rank_ || !waits_for(peer)) continue;
    const std::uint32_t aborted_by = head_->aborted_by.load();
    TORCH_CHECK_WITH(DistBackendError, aborted_by == 0, "rank ", aborted_by - 1,
                     " gave up and aborted the group");
    pollfd exited{pidfds_[peer], POLLIN, 0};
    const bool dead = pidfds_[peer] >= 0 && poll(&exited, 1, 0) > 0;
    TORCH_CHECK_WITH(DistBackendError, !dead || !waits_for(peer), "rank ", peer, " died");
  }
}

void ShmSegment::abort() {
  std::uint32_t none = 0;
  head_->aborted_by.compare_exchange_strong(none, static_cast<std::uint32_t>(rank_) + 1);
}

}  // namespace sweep::comm
