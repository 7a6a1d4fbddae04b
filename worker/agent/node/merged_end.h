// merged_end: what the ends of an attempt's parts say together. It knows no node and no clock: stamps are the
// head's, and texts for people name their node already.
#pragma once
#include <vector>

#include "schema/records.h"

namespace sweep::agent {

struct PartEnd {
  const AttemptEnd* end = nullptr;
  i64 ranks = 0;
  // The trouble began there.
  bool leads = false;
};

// By the rule that schema/records.def has for each field. What only the head agent knows is left to the caller.
AttemptEnd merged_end(const std::vector<PartEnd>& parts);

}  // namespace sweep::agent
