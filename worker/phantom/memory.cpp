#include "worker/phantom/memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "worker/phantom/counters.h"
#include "worker/phantom/faults.h"
#include "worker/phantom/node.h"

namespace sweep::phantom {
namespace {

constexpr std::size_t kPage = 2 << 20;  // the driver's granularity

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
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

cudaError_t Memory::allocate(void** at, std::size_t bytes, int device) {
  *at = nullptr;
  if (bytes == 0) return cudaSuccess;
  const std::size_t charged = whole_pages(bytes);
  if (charged < bytes) return cudaErrorMemoryAllocation;
  if (const auto refused = charge(charged, device)) return refused;
  void* made =
      ::mmap(nullptr, charged, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) {
    release(charged, device);
    return cudaErrorMemoryAllocation;
  }
  const std::lock_guard lock(mutex_);
  ranges_[static_cast<char*>(made)] = {static_cast<char*>(made), charged, device, true};
  *at = made;
  return cudaSuccess;
}

cudaError_t Memory::free(void* at) {
  if (at == nullptr) return cudaSuccess;
  Range range;
  {
    const std::lock_guard lock(mutex_);
    const auto found = ranges_.find(static_cast<char*>(at));
    if (found == ranges_.end() || !found->second.allocated) return cudaErrorInvalidValue;
    range = found->second;
    ranges_.erase(found);
  }
  ::munmap(range.begin, range.bytes);
  release(range.bytes, range.device);
  return cudaSuccess;
}

void Memory::map(void* at, std::size_t bytes, int device) {
  const std::lock_guard lock(mutex_);
  ranges_[static_cast<char*>(at)] = {static_cast<char*>(at), bytes, device, false};
}

void Memory::unmap(void* at, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto first = ranges_.lower_bound(static_cast<char*>(at));
  ranges_.erase(first, ranges_.lower_bound(static_cast<char*>(at) + bytes));
}

void Memory::pin(void* at, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  counters().pinned_bytes += bytes;
  counters().peak_pinned_bytes =
      std::max<std::uint64_t>(counters().peak_pinned_bytes, counters().pinned_bytes);
  ranges_[static_cast<char*>(at)] = {static_cast<char*>(at), bytes, -1, false};
}

std::optional<std::size_t> Memory::unpin(void* at) {
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.find(static_cast<char*>(at));
  if (found == ranges_.end() || found->second.device != -1) return std::nullopt;
  const std::size_t bytes = found->second.bytes;
  counters().pinned_bytes -= bytes;
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
