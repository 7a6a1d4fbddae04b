// NodePart: a PartOfAttempt as the agent of its node has it.
#pragma once
#include "schema/records.h"

namespace sweep {

// The most ranks of one attempt; a larger number is damage.
inline constexpr i64 kMaxRanks = 1 << 16;

struct NodePart : PartOfAttempt {
  // No other node takes part.
  bool whole = true;

  // The attempt's rank that the index-th process of this node is.
  i64 rank(i64 index) const { return attempt.rank_of(first_rank + index); }
};

}  // namespace sweep
