// BlockEvents: the allocations and frees, in order, that a BlockTrace of the counting allocator keeps.
#pragma once
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "bench_kernels/kernels/counting_allocator.h"

namespace sweep::memory {

class BlockEvents {
 public:
  void allocated(const void* block, std::int64_t bytes) { events_.push_back({block, bytes}); }
  void freed(const void* block) { events_.push_back({block, 0}); }
  void mark() { marks_.push_back(events_.size()); }
  std::vector<LiveBlocks> at_peak() const;
  // Bytes of those of these blocks that were there at the highest point. REQUIRES: all of them live now.
  std::int64_t bytes_at_peak(const std::unordered_set<const void*>& blocks) const;
  // The same events through a caching allocator that may reserve `limit` bytes, with `library` bytes more from
  // the first mark on.
  CachingUse through_caching(std::int64_t library, std::int64_t limit) const;

 private:
  struct Event {
    const void* block;
    std::int64_t bytes;  // 0: it is freed
  };

  std::size_t end_of_peak() const;  // events up to the highest point

  std::vector<Event> events_;
  std::vector<std::size_t> marks_;
};

}  // namespace sweep::memory
