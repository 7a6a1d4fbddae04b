// CachingModel: what CUDA's caching allocator reserves for a sequence of allocations, counted without a GPU.
// Segments of 2 MiB for blocks of at most 1 MiB, of 20 MiB for blocks below 10 MiB, else of the block's size
// in steps of 2 MiB; the best fitting free block is split; neighbours that are free become one. Segments are
// given back when the device has no room for another one. One stream; pure.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

namespace sweep::memory {

class CachingModel {
 public:
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
  explicit CachingModel(std::int64_t limit = kNoLimit) : limit_(limit) {}

  // Returns false, and allocates nothing, if the device has no room for the block even after all segments that
  // nothing uses were given back: what a program sees as an out-of-memory error.
  bool allocate(const void* id, std::int64_t bytes);
  void free(const void* id);  // does nothing for an id that was not allocated
  std::int64_t reserved() const { return reserved_; }
  std::int64_t peak_reserved() const { return peak_reserved_; }
  std::int64_t allocated() const { return allocated_; }
  // The number of times that segments were given back (num_alloc_retries of PyTorch's statistics).
  std::int64_t retries() const { return retries_; }

 private:
  struct Block {
    std::int64_t bytes, address;
    bool small = false, is_free = true;
    Block *before = nullptr, *after = nullptr;  // neighbours in the same segment
  };
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return a->bytes != b->bytes ? a->bytes < b->bytes : a->address < b->address;
    }
  };
  using Free = std::set<Block*, BySize>;

  Free& pool(bool small) { return small ? small_ : large_; }
  Block* new_block(Block);
  Block* new_segment(std::int64_t bytes, bool small);  // nullptr: the device has no room for it
  void give_back(Free&);
  void split(Block*, std::int64_t bytes);
  void join(Block* into, Block* gone);  // gone lies behind

  Free small_, large_;
  std::unordered_map<const void*, Block*> live_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Block*> unused_;
  std::int64_t limit_, reserved_ = 0, peak_reserved_ = 0, allocated_ = 0, retries_ = 0, next_address_ = 0;
};

}  // namespace sweep::memory
