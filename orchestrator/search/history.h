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

// What is concluded from trials that have ended.
struct Conclusions {
  bool memory = true, recompute = false;
};
// The waiting candidates that one that has ended rules out; the reason names it.
std::vector<RuledOut> ruled_out_by(const Candidate& ended, std::span<const Candidate>, Conclusions);
// The same by all that have ended. REQUIRES: the layouts of these candidates.
std::vector<RuledOut> ruled_out_by_history(std::span<const Candidate>, const std::vector<Group>& layouts,
                                           Conclusions);

// For a grid that concludes by memory: the places that a layout's trials have in the order go to its smaller micro-batches
// first, so that one trial that runs out of memory is all that a layout costs.
void smaller_first(std::span<PlanEntry>);

}  // namespace sweep::search
