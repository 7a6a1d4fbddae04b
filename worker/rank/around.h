// The work of a rank beside its timed steps, each a phase of its own: it loads weights before them, evaluates
// and writes a checkpoint after them. It fills the record's AroundStep; a failure is an exception, as in the steps.
#pragma once
#include <functional>

#include "bench_kernels/step/train_step.h"
#include "runtime/progress_writer.h"
#include "schema/attempt.h"
#include "schema/records.h"
#include "worker/rank/device.h"

namespace sweep::rank {

// Before the first step: weights from a file that the ranks write with those they have. meet() waits for all ranks;
// what is timed begins there. A rehearsal sends the traffic, and has no file.
void load_weights(const Attempt&, bool first_rank, step::TrainStep&, const std::function<void()>& meet,
                  ProgressWriter&, AroundStep&);

// After the timed steps. The device's peak begins anew and goes on to count for the whole. meet() waits for all ranks:
// the clock begins there, and with text metrics they meet again at the end.
void evaluate(const Attempt&, step::TrainStep&, Device&, const std::function<void()>& meet, ProgressWriter&,
              AroundStep&);

// After the timed steps. A rehearsal takes the checkpoint's memory and sends its traffic, and writes no file.
void write_checkpoint(const Attempt&, step::TrainStep&, ProgressWriter&, AroundStep&);

// Host memory that each rank of a node may take: its share of what the trial or the machine leaves.
// one_rank: rank 0 alone takes it.
std::optional<i64> host_limit(const Attempt&, bool one_rank);

}  // namespace sweep::rank
