// Steps: the steps of an attempt, each reduced over its ranks, once. Timed steps leave the warm-up out.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "schema/records.h"

namespace sweep::metrics {

// One step that every rank reported: times are the maximum over ranks, tokens and retries their sum, the loss
// their mean. Absent communication: some rank could not separate it.
struct WholeStep {
  i64 repeat = 0, step = 0;
  bool warmup = false;
  i64 step_ns = 0, forward_ns = 0, backward_ns = 0, forward_backward_ns = 0, optimizer_ns = 0;
  std::optional<i64> exposed_comm_ns;
  i64 tokens = 0, alloc_retries = 0;
  double loss = 0;
};
// By repeat and step; warm-up included and marked. Steps that some of the `world` ranks lack are left out.
std::vector<WholeStep> whole_steps(std::span<const RankRecord>, i64 world);

// Milliseconds; one value per timed step that every one of the `world` ranks reported, with a step time above
// 0. A part that some step lacks (0 nanoseconds, or no separable communication) has an empty column.
struct Steps {
  std::vector<double> step, forward, backward, forward_backward, optimizer, exposed_comm;
};
Steps timed_steps(std::span<const RankRecord>, i64 world);

}  // namespace sweep::metrics
