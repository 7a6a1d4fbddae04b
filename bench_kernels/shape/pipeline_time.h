// The time of one step's pipeline by walking the computations of its schedule: stages may differ, messages
// take time. Bubbles are what the walk leaves idle; no formula of them is used. Pure.
#pragma once
#include <span>

#include "bench_kernels/shape/schedule.h"

namespace sweep::shape {

// Times of one micro-batch on one virtual stage. If the schedule splits the backward, each part is half of
// it.
struct StageSeconds {
  double forward = 0, backward = 0;
};

// Seconds from the first forward to the last backward of all ranks. `stages`: the times of every virtual stage. A message
// arrives message_s after its computation, and keeps no rank busy. With many micro-batches the steady state is
// walked once and continued, for it repeats. REQUIRES: as make_schedule(); stages.size() == p.stages().
double pipeline_seconds(const Pipeline& p, std::span<const StageSeconds> stages, double message_s);

}  // namespace sweep::shape
