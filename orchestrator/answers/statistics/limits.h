// Limits: what fits into the memory of each setting: the most tokens of a micro-step that ran, and the fewest that did not.
#pragma once
#include <span>
#include <vector>

#include "orchestrator/answers/fields.h"

namespace sweep::answers {

// The rows that are equal in all axes but batch sizes and sequence length.
struct MemoryLimit {
  const ResultRow* fits =
      nullptr;  // the most tokens (micro-batch size x sequence length) that ended ok; of equals
                // the one with the least peak
  const ResultRow* fails =
      nullptr;  // the fewest tokens above them that ran out of memory, or were pruned for it
  std::optional<double> headroom;  // share of the device that `fits` left free; absent: not measured
};
i64 tokens_of_micro_step(const ResultRow&);

// The axes that tell settings apart: what varies without batch sizes and sequence length.
std::vector<Field> limit_fields(std::span<const ResultRow>);
// Most tokens first; settings of which neither is known are left out. Empty
// where nothing ran out of memory or was pruned for it: then no limit was seen.
std::vector<MemoryLimit> memory_limits(std::span<const ResultRow>);

}  // namespace sweep::answers
