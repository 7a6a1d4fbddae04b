// Buckets: the gradient buckets of a chunk as backward completes them: roles apart, closed before they grow beyond a
// size. They count elements, and know nothing of layers.
#pragma once
#include <utility>
#include <vector>

#include "bench_kernels/shape/chunk_parameters.h"

namespace sweep::shape {

inline constexpr int kDense = 0, kPartial = 1, kExpert = 2, kTied = 3;

class Buckets {
 public:
  // The shares are those of shards.
  Buckets(double most_elements, Backward backward, bool sharded, double of_dense, double of_experts)
      : most_(most_elements),
        first_(backward == Backward::kFirst),
        sharded_(sharded),
        of_dense_(of_dense),
        of_experts_(of_experts) {}

  // Stacks come in the order of backward; the numbers are their buckets.
  std::size_t add(double elements, int role) {
    std::size_t& open = open_[role];
    if (open == kNone || of_[open].elements + elements > most_) open = of_.size(), of_.push_back({});
    of_[open].share = role == kExpert ? of_experts_ : of_dense_;
    of_[open].elements += elements, ++of_[open].missing;
    return open;
  }
  void make_room(std::size_t bucket) {
    Bucket& b = of_[bucket];
    if (!b.there) (sharded_ ? now_.whole : now_.kept) += b.elements;
    b.there = true;
  }
  // A stack's gradient is complete: a bucket leaves when all of its are, one under way at a time.
  void complete(std::size_t bucket) {
    if (--of_[bucket].missing > 0 || !sharded_) return;
    if (reducing_ != kNone) now_.whole -= of_[reducing_].elements * (first_ ? 1 : 1 + of_[reducing_].share);
    reducing_ = bucket;
    (first_ ? now_.kept : now_.whole) += of_[bucket].share * of_[bucket].elements;
    if (now_.total() > top_.total()) top_ = now_;
  }
  // The most since the last time that it was asked for, and what there is now.
  GradientBytes take_top(double width) {
    const GradientBytes top = std::exchange(top_, now_);
    return {width * top.kept, width * top.whole};
  }
  GradientBytes bytes(double width) const { return {width * now_.kept, width * now_.whole}; }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Bucket {
    double elements = 0, share = 1;
    i64 missing = 0;
    bool there = false;
  };
  double most_;
  bool first_, sharded_;
  double of_dense_, of_experts_;
  GradientBytes now_, top_;  // counted in elements
  std::vector<Bucket> of_;
  std::size_t open_[4] = {kNone, kNone, kNone, kNone}, reducing_ = kNone;
};

}  // namespace sweep::shape
