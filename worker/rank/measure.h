// The trial loop of one rank: steps, their samples and what the process used meanwhile. It knows nothing of
// what a step does.
#pragma once
#include <functional>

#include "bench_kernels/step/train_step.h"
#include "runtime/progress_writer.h"
#include "schema/attempt.h"
#include "schema/records.h"
#include "worker/rank/device.h"
#include "worker/rank/stop_together.h"

namespace sweep::rank {

using RunStep = std::function<step::StepTimes()>;

// Runs repeats x (warm-up + timed) steps and appends a sample for each to the record, with startup_ns,
// cpu_percent and alloc_retries over the timed steps. A loss that is not finite makes the record invalid and
// names the first such step; the steps go on, because the peers do.
// StopTogether may end them before the last one.
void measure(const MeasurePlan&, const RunStep&, StopTogether&, const Device&, ProgressWriter&, RankRecord&);

}  // namespace sweep::rank
