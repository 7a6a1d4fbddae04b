// Steps: the timed steps of an attempt, each reduced over its ranks by the maximum. Warm-up is left out here,
// once.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "schema/records.h"

namespace sweep::metrics {

// Milliseconds; one value per timed step that every one of the `world` ranks reported, with a step time above
// 0. A part that some step lacks (0 nanoseconds, or no separable communication) has an empty column.
struct Steps {
  std::vector<double> step, forward, backward, forward_backward, optimizer, exposed_comm;
};
Steps timed_steps(std::span<const RankRecord>, i64 world);

}  // namespace sweep::metrics
