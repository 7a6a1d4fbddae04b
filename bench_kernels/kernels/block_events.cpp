#include "bench_kernels/kernels/block_events.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "bench_kernels/kernels/caching_model.h"

namespace sweep::memory {

std::size_t BlockEvents::end_of_peak() const {
  std::unordered_map<const void*, std::int64_t> live;
  std::int64_t now = 0, peak = 0;
  std::size_t end = 0;
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const auto [block, bytes] = events_[i];
    std::int64_t& held = live[block];  // 0 where the block is older than the trace
    now += bytes - held;
    held = bytes;
    if (now > peak) peak = now, end = i + 1;
  }
  return end;
}

std::vector<LiveBlocks> BlockEvents::at_peak() const {
  const std::size_t end = end_of_peak();
  const auto after = std::upper_bound(marks_.begin(), marks_.end(), end);
  const std::size_t step_begins = after == marks_.begin() ? 0 : *(after - 1);
  std::unordered_map<const void*, std::pair<std::int64_t, bool>> live;  // bytes, lasting
  for (std::size_t i = 0; i < end; ++i) live[events_[i].block] = {events_[i].bytes, i < step_begins};
  std::map<std::pair<std::int64_t, bool>, std::int64_t> counts;
  for (const auto& [block, kind] : live)
    if (kind.first > 0) ++counts[kind];
  std::vector<LiveBlocks> listed;
  for (const auto& [kind, count] : counts) listed.push_back({kind.first, count, kind.second});
  std::sort(listed.begin(), listed.end(),
            [](const LiveBlocks& a, const LiveBlocks& b) { return a.bytes * a.count > b.bytes * b.count; });
  return listed;
}

std::int64_t BlockEvents::bytes_at_peak(const std::unordered_set<const void*>& blocks) const {
  const std::size_t end = end_of_peak();
  std::int64_t sum = 0;
  std::unordered_set<const void*> seen;  // a block's last event is its allocation: it lives
  for (std::size_t i = events_.size(); i-- > 0;)
    if (blocks.count(events_[i].block) > 0 && seen.insert(events_[i].block).second && i < end)
      sum += events_[i].bytes;
  return sum;
}

CachingUse BlockEvents::through_caching(std::int64_t library, std::int64_t limit) const {
  const std::size_t begins = marks_.empty() ? 0 : marks_.front();
  CachingModel model(limit);
  const auto use = [&](std::int64_t refused) {
    return CachingUse{model.peak_reserved(), model.retries(), refused, model.allocated(), model.reserved()};
  };
  for (std::size_t i = 0; i < events_.size(); ++i) {
    if (i == begins && library > 0 && !model.allocate(nullptr, library)) return use(library);
    const auto [block, bytes] = events_[i];
    model.free(block);
    if (bytes > 0 && !model.allocate(block, bytes)) return use(bytes);
  }
  return use(0);
}

}  // namespace sweep::memory
