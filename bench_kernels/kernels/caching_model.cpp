#include "bench_kernels/kernels/caching_model.h"

#include <algorithm>

namespace sweep::memory {
namespace {

constexpr std::int64_t kSmallestBlock = 512, kOneMiB = 1 << 20;
constexpr std::int64_t kMostSmall = kOneMiB, kSmallSegment = 2 * kOneMiB;
constexpr std::int64_t kLargeFrom = 10 * kOneMiB, kSharedSegment = 20 * kOneMiB, kSegmentStep = 2 * kOneMiB;

std::int64_t in_steps(std::int64_t bytes, std::int64_t step) {
  return (bytes + step - 1) / step * step;
}

}  // namespace

CachingModel::Block* CachingModel::new_block(Block b) {
  if (unused_.empty()) {
    blocks_.push_back(std::make_unique<Block>(b));
    return blocks_.back().get();
  }
  Block* reused = unused_.back();
  unused_.pop_back();
  *reused = b;
  return reused;
}

CachingModel::Block* CachingModel::new_segment(std::int64_t bytes, bool small) {
  std::int64_t size = in_steps(bytes, kSegmentStep);
  if (small)
    size = kSmallSegment;
  else if (bytes < kLargeFrom)
    size = kSharedSegment;
  if (size > limit_ - reserved_) {
    ++retries_;
    give_back(small_);
    give_back(large_);
    if (size > limit_ - reserved_) return nullptr;
  }
  Block* block = new_block({size, next_address_, small});
  next_address_ += size;
  reserved_ += size;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  return block;
}

void CachingModel::give_back(Free& free) {
  for (auto it = free.begin(); it != free.end();) {
    Block* block = *it;
    const bool whole = block->before == nullptr && block->after == nullptr;
    if (whole) reserved_ -= block->bytes, unused_.push_back(block);
    it = whole ? free.erase(it) : std::next(it);
  }
}

void CachingModel::split(Block* block, std::int64_t bytes) {
  const std::int64_t rest = block->bytes - bytes;
  if (block->small ? rest < kSmallestBlock : rest <= kMostSmall) return;
  Block* behind = new_block({rest, block->address + bytes, block->small, true, block, block->after});
  if (behind->after != nullptr) behind->after->before = behind;
  block->after = behind;
  block->bytes = bytes;
  pool(block->small).insert(behind);
}

bool CachingModel::allocate(const void* id, std::int64_t bytes) {
  const std::int64_t needed = in_steps(bytes, kSmallestBlock);
  const bool small = needed <= kMostSmall;
  Block wanted{needed, -1, small};
  Free& free = pool(small);
  const auto found = free.lower_bound(&wanted);
  Block* block = found == free.end() ? nullptr : *found;
  if (block != nullptr)
    free.erase(found);
  else if (block = new_segment(needed, small); block == nullptr)
    return false;
  block->is_free = false;
  split(block, needed);
  allocated_ += block->bytes;
  live_[id] = block;
  return true;
}

void CachingModel::join(Block* into, Block* gone) {
  into->bytes += gone->bytes;
  into->after = gone->after;
  if (into->after != nullptr) into->after->before = into;
  unused_.push_back(gone);
}

void CachingModel::free(const void* id) {
  const auto found = live_.find(id);
  if (found == live_.end()) return;
  Block* block = found->second;
  live_.erase(found);
  allocated_ -= block->bytes;
  Free& free = pool(block->small);
  if (Block* after = block->after; after != nullptr && after->is_free) free.erase(after), join(block, after);
  if (Block* before = block->before; before != nullptr && before->is_free) {
    free.erase(before);
    join(before, block);
    block = before;
  }
  block->is_free = true;
  free.insert(block);
}

}  // namespace sweep::memory
