#include "worker/phantom/memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "worker/phantom/counters.h"
#include "worker/phantom/faults.h"
#include "worker/phantom/node.h"

namespace sweep::phantom {
namespace {

constexpr std::size_t kPage = 2 << 20;  // the driver's granularity
constexpr std::size_t kPoolUnit = 512;  // unit of a pool's pieces

std::size_t whole(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

void count_pinned(std::int64_t change) {
  Counters& c = counters();
  c.pinned_bytes += static_cast<std::uint64_t>(change);
  c.peak_pinned_bytes = std::max<std::uint64_t>(c.peak_pinned_bytes, c.pinned_bytes);
}

void count_held(std::int64_t change) {
  Counters& c = counters();
  c.held_bytes += static_cast<std::uint64_t>(change);
  c.peak_held_bytes = std::max<std::uint64_t>(c.peak_held_bytes, c.held_bytes);
}

}  // namespace

Memory& Memory::get() {
  static auto* memory = new Memory;
  return *memory;
}

cudaError_t Memory::charge(std::size_t bytes, int device) {
  Clocks::get().spend(description().profile.malloc_host);
  Node* node = Node::open();
  if (Faults::get().triggered(Fault::kMallocOom, device) != nullptr || node == nullptr ||
      !node->charge(device, bytes)) {
    ++counters().malloc_failures;
    return cudaErrorMemoryAllocation;
  }
  ++counters().mallocs;
  count_held(static_cast<std::int64_t>(bytes));
  return cudaSuccess;
}

void Memory::release(std::size_t bytes, int device) {
  if (Node* node = Node::open()) node->release(device, bytes);
  ++counters().frees;
  count_held(-static_cast<std::int64_t>(bytes));
}

cudaError_t Memory::allocate(void** at, std::size_t bytes, int device, MemoryKind kind) {
  *at = nullptr;
  if (bytes == 0) return cudaSuccess;
  const bool pooled = kind == MemoryKind::kPooled, managed = kind == MemoryKind::kManaged;
  Range range{nullptr, whole(bytes, pooled ? kPoolUnit : kPage), managed ? -1 : device, kind};
  if (range.bytes < bytes) return cudaErrorMemoryAllocation;
  if (const auto refused = take(range)) return refused;
  void* made = ::mmap(nullptr, range.bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) {
    give_back(range);
    return cudaErrorMemoryAllocation;
  }
  const std::lock_guard lock(mutex_);
  range.begin = static_cast<char*>(made);
  ranges_[range.begin] = range;
  *at = made;
  return cudaSuccess;
}

cudaError_t Memory::free(void* at) {
  if (at == nullptr) return cudaSuccess;
  Range range;
  {
    const std::lock_guard lock(mutex_);
    const auto found = ranges_.find(static_cast<char*>(at));
    if (found == ranges_.end() || found->second.kind == MemoryKind::kMapped ||
        found->second.kind == MemoryKind::kPinned)
      return cudaErrorInvalidValue;
    range = found->second;
    ranges_.erase(found);
  }
  ::munmap(range.begin, range.bytes);
  give_back(range);
  return cudaSuccess;
}

cudaError_t Memory::take(const Range& range) {
  if (range.kind == MemoryKind::kPooled) return take_from_pool(range.bytes, range.device);
  if (range.kind == MemoryKind::kAllocated) return charge(range.bytes, range.device);
  Clocks::get().spend(description().profile.malloc_host);
  count_pinned(static_cast<std::int64_t>(range.bytes));
  return cudaSuccess;
}

void Memory::give_back(const Range& range) {
  if (range.kind == MemoryKind::kAllocated) return release(range.bytes, range.device);
  if (range.kind == MemoryKind::kManaged) return count_pinned(-static_cast<std::int64_t>(range.bytes));
  const std::lock_guard lock(pools_mutex_);
  Pool& pool = pools_[range.device];
  pool.used -= range.bytes;
  trim_locked(range.device, pool.threshold);
}

cudaError_t Memory::take_from_pool(std::size_t bytes, int device) {
  const std::lock_guard lock(pools_mutex_);
  Pool& pool = pools_[device];
  if (pool.used + bytes > pool.reserved) {
    const std::size_t more = whole(pool.used + bytes - pool.reserved, kPage);
    if (const auto refused = charge(more, device)) return refused;
    pool.reserved += more;
    pool.most_reserved = std::max(pool.most_reserved, pool.reserved);
  }
  pool.used += bytes;
  pool.most_used = std::max(pool.most_used, pool.used);
  return cudaSuccess;
}

Pool Memory::pool(int device) {
  const std::lock_guard lock(pools_mutex_);
  return pools_[device];
}

void Memory::set_threshold(int device, std::uint64_t bytes) {
  const std::lock_guard lock(pools_mutex_);
  pools_[device].threshold = bytes;
}

void Memory::reset_most_used(int device) {
  const std::lock_guard lock(pools_mutex_);
  Pool& pool = pools_[device];
  pool.most_used = pool.used;
}

void Memory::reset_most_reserved(int device) {
  const std::lock_guard lock(pools_mutex_);
  Pool& pool = pools_[device];
  pool.most_reserved = pool.reserved;
}

void Memory::trim(int device, std::uint64_t keep) {
  const std::lock_guard lock(pools_mutex_);
  trim_locked(device, keep);
}

void Memory::trim_locked(int device, std::uint64_t keep) {
  Pool& pool = pools_[device];
  if (pool.reserved <= keep) return;
  const std::uint64_t left = whole(std::max(pool.used, keep), kPage);
  if (left < pool.reserved) release(pool.reserved - left, device);
  pool.reserved = std::min(pool.reserved, left);
}

void Memory::map(void* at, std::size_t bytes, int device) {
  const std::lock_guard lock(mutex_);
  ranges_[static_cast<char*>(at)] = {static_cast<char*>(at), bytes, device, MemoryKind::kMapped};
}

void Memory::unmap(void* at, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto first = ranges_.lower_bound(static_cast<char*>(at));
  ranges_.erase(first, ranges_.lower_bound(static_cast<char*>(at) + bytes));
}

void Memory::pin(void* at, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  count_pinned(static_cast<std::int64_t>(bytes));
  ranges_[static_cast<char*>(at)] = {static_cast<char*>(at), bytes, -1, MemoryKind::kPinned};
}

std::optional<std::size_t> Memory::unpin(void* at) {
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.find(static_cast<char*>(at));
  if (found == ranges_.end() || found->second.kind != MemoryKind::kPinned) return std::nullopt;
  const std::size_t bytes = found->second.bytes;
  count_pinned(-static_cast<std::int64_t>(bytes));
  ranges_.erase(found);
  return bytes;
}

std::optional<Memory::Range> Memory::find(const void* at) {
  const std::lock_guard lock(mutex_);
  auto* byte = const_cast<char*>(static_cast<const char*>(at));
  auto next = ranges_.upper_bound(byte);
  if (next == ranges_.begin()) return std::nullopt;
  const Range& range = std::prev(next)->second;
  if (byte >= range.begin + range.bytes) return std::nullopt;
  return range;
}

}  // namespace sweep::phantom
