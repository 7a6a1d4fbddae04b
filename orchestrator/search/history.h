// History: what trials that have ended say of others that wait. A trial that ran out of memory rules out larger
// micro-batches of its layout; one that fits without recomputation rules out the same with recomputation.
#pragma once
#include "orchestrator/search/groups.h"

namespace sweep::search {

// Whether `larger` runs out of memory because `oom` did: all else is equal, its micro-batch is larger, and its
// memory grows with it. Of a command every label must be equal: which of them are axes is not known.
bool out_of_memory_too(const Candidate& oom, const Candidate& larger);
// Whether `with` does what `fits` does, with recomputation besides.
bool only_recomputes(const Candidate& fits, const Candidate& with);

// The kinds of conclusions from trials that have ended.
struct Conclusions {
  bool memory = true, recompute = false;
};

class History {
 public:
  History(std::span<const Candidate>, Conclusions);
  // The conclusions from the status of this one: the waiting ones that it rules out, or itself. Each reason
  // names the trial that ended. REQUIRES the candidates that it was made of, with any status.
  std::vector<RuledOut> concluded_from(std::span<const Candidate>, std::size_t candidate) const;

 private:
  // Candidates that differ by their batch alone, or by recomputation alone; by candidate, empty: not asked for.
  struct Alike {
    std::vector<Group> groups;
    std::vector<std::size_t> group_of;
  };
  static Alike alike(std::span<const Candidate>, Trial (*without)(const Trial&));

  Alike batches_, recomputations_;
};

// Serves a grid that concludes by memory: the places of a layout's trials in the order go to its smaller micro-batches
// first, so that one trial that runs out of memory is all that a layout costs.
void smaller_first(std::span<PlanEntry>);

}  // namespace sweep::search
