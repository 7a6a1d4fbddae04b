// NodePart: what one node runs of an attempt: consecutive ranks, the whole attempt where it has one node. It
// travels from the head agent to a node agent (agent_message.h).
#pragma once
#include <vector>

#include "schema/attempt.h"

namespace sweep {

// The most ranks of one attempt; a larger number is damage.
inline constexpr i64 kMaxRanks = 1 << 16;

struct NodePart {
  Attempt attempt;
  i64 first_rank = 0;
  i64 ranks = 1;
  // No other node takes part.
  bool whole = true;
  // Slots of the node, one for each rank.
  std::vector<i64> slots;
  // Other attempts may run on the node meanwhile.
  bool beside = false;

  // The attempt's rank that the index-th process of this node is.
  i64 rank(i64 index) const { return attempt.rank_of(first_rank + index); }
};

}  // namespace sweep
