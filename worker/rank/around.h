// What a rank does beside its timed steps, each a phase of its own: it evaluates, and writes a checkpoint. It fills the record's
// AroundStep; what fails is an exception, as in the steps.
#pragma once
#include "bench_kernels/step/train_step.h"
#include "runtime/progress_writer.h"
#include "schema/attempt.h"
#include "schema/records.h"
#include "worker/rank/device.h"

namespace sweep::rank {

// After the timed steps. The device's peak begins anew and goes on to count for the whole.
void evaluate(const Attempt&, step::TrainStep&, Device&, ProgressWriter&, AroundStep&);

// After the timed steps. A rehearsal takes the checkpoint's memory and sends its traffic, and writes no file.
void write_checkpoint(const Attempt&, step::TrainStep&, ProgressWriter&, AroundStep&);

// Host memory that each rank of a node may take: its share of what the trial or the machine leaves.
std::optional<i64> host_limit(const Attempt&);

}  // namespace sweep::rank
