// BusyTime: how long a device was busy: the length of the union of intervals, in whatever order they come.
// Streams of one device end their work out of order, and the sum must be the same in every run.
#pragma once
#include <cstdint>
#include <iterator>
#include <map>

namespace sweep::phantom {

class BusyTime {
 public:
  // Nanoseconds that the interval [begin, end) adds to the union.
  std::int64_t add(std::int64_t begin, std::int64_t end) {
    if (begin < forgotten_) begin = forgotten_;
    if (end <= begin) return 0;
    std::int64_t added = end - begin;
    auto at = spans_.upper_bound(begin);
    if (at != spans_.begin() && std::prev(at)->second >= begin) --at;
    while (at != spans_.end() && at->first <= end) {  // spans that it touches become one with it
      const std::int64_t low = at->first > begin ? at->first : begin,
                         high = at->second < end ? at->second : end;
      if (high > low) added -= high - low;
      begin = at->first < begin ? at->first : begin;
      end = at->second > end ? at->second : end;
      at = spans_.erase(at);
    }
    spans_.emplace(begin, end);
    total_ += added;
    while (spans_.size() > kMostSpans) {
      forgotten_ = spans_.begin()->second;
      spans_.erase(spans_.begin());
    }
    return added;
  }
  std::int64_t total() const { return total_; }
  std::int64_t until() const { return spans_.empty() ? forgotten_ : std::prev(spans_.end())->second; }

 private:
  // Spans that are kept. Older ones count in the total, and what comes before their end adds nothing.
  static constexpr std::size_t kMostSpans = 1u << 16;
  std::map<std::int64_t, std::int64_t> spans_;  // begin -> end, none touching another
  std::int64_t total_ = 0, forgotten_ = 0;
};

}  // namespace sweep::phantom
