// Sizes: trials of one group that differ by one size, the smallest first: the micro-batch of a layout, or the
// parameters of a model. They answer what is the largest that fits.
#pragma once
#include "orchestrator/search/groups.h"

namespace sweep::search {

// The micro-batch of a trial, and the parameters of its model.
i64 micro_batch_of(const Candidate&);
i64 parameters_of(const Candidate&);

class Sizes {
 public:
  using SizeOf = i64 (*)(const Candidate&);
  // Trials that failed otherwise than for memory tell nothing, and are left out.
  Sizes(std::span<const Candidate>, const Group&, SizeOf);

  i64 count() const { return static_cast<i64>(sizes_.size()); }
  std::size_t candidate(i64 at) const { return sizes_[static_cast<std::size_t>(at)]; }
  const Candidate& of(i64 at) const { return all_[candidate(at)]; }
  i64 size(i64 at) const { return size_of_(of(at)); }
  bool is(i64 at, TrialStatus status) const { return at >= 0 && at < count() && of(at).status == status; }
  i64 tried() const;
  bool any_runs() const;
  // -1: none fits so far.
  i64 largest_that_fits() const;
  // count(): none ran out of memory so far.
  i64 smallest_too_large() const;

 private:
  std::span<const Candidate> all_;
  Group sizes_;
  SizeOf size_of_;
};

// No prediction says of any trial of the group whether it fits.
bool nothing_predicted(std::span<const Candidate>, const Group&);

// The next size at least twice as large as the largest that fits so far, or the last one.
std::optional<i64> doubled(const Sizes&);

// The trial that halves the range in which the largest fitting size may be, by the plan's prediction and, for a
// third, anywhere. The cost is at most log2 of the number of sizes, and 2, whatever the prediction is worth.
std::optional<i64> bracket(const Sizes&);

}  // namespace sweep::search
