// Early failures: those before a rank has begun to build its trial. NodeTrust holds them against the node, since a trial has
// done nothing yet by which it could fail.
#pragma once
#include <algorithm>
#include <optional>
#include <span>

#include "schema/codec.h"
#include "schema/records.h"

namespace sweep {

inline bool is_early(Phase phase) {
  return phase == Phase::kStart || phase == Phase::kInit;
}
inline bool is_early(const RankPosition& rank) {
  const auto phase = phase_from(rank.phase);
  return phase && is_early(*phase);
}

// Whether an attempt that failed failed early. `failed_in`: the phase in the record of the rank that failed; nullopt: no rank
// left a record, and `seen` decides, the phases in which the agent last saw its ranks. It is early if none was seen.
inline bool failed_early(std::optional<Phase> failed_in, std::span<const RankPosition> seen) {
  if (failed_in) return is_early(*failed_in);
  return std::ranges::all_of(seen, [](const RankPosition& rank) { return is_early(rank); });
}

}  // namespace sweep
