// The simulation of a pipeline schedule: when each computation runs, whether anything waits for ever, how
// many micro-batches are in flight, and how much of the time is bubble. Pure.
#pragma once
#include "base/expected.h"
#include "bench_kernels/shape/schedule.h"

namespace sweep::shape {

// Costs of one micro-batch in one rank's share of the layers (all its chunks), in any unit. If the schedule
// splits the backward, the weight part is taken from it.
struct Costs {
  double forward = 1, backward = 2, backward_weight = 1;
};

// A computation in its time.
struct Span {
  Action action;
  double start = 0, end = 0;
};

// Each rank runs its computations in the given order, each as soon as its input is there; messages take no
// time. A computation that never gets its input is missing, and so are those after it.
std::vector<std::vector<Span>> run_computations(const Pipeline&, const std::vector<ActionList>& computations,
                                                const Costs&);

struct ScheduleReport {
  double makespan = 0;
  std::vector<double> idle;  // for each rank, the makespan less its own computations
  // For each rank, the most micro-batches (of a chunk, each) between the start of their forward and the end
  // of their (weight) backward.
  std::vector<i64> in_flight;
  // Waiting over all ranks' time: (p - 1) / (m v + p - 1) for 1f1b, and interleaved with forward : backward 1
  // : 2.
  double bubble = 0;
};

// Runs all ranks' lists as they are, with the strictest transport: all posts of a rank, whichever their peer
// and direction, form one queue, and a message passes when it is at the front at both ends. That is what NCCL
// does with sends and receives of one communicator, which run one after another on its stream. A message
// itself takes no time. An error says what is wrong: a rank that waits for
// ever, ends of a queue that differ, a computation that is missing, twice or before what it needs.
Expected<ScheduleReport> check_schedule(const Pipeline&, const std::vector<ActionList>&, const Costs& = {});

// (p - 1) / (m v + p - 1), the bubble's share of the pipeline's time (for zero_bubble its third).
double ideal_bubble(const Pipeline&);
// The most micro-batches (in units of a rank's whole share of layers) that a rank has in flight.
double peak_in_flight(const Pipeline&, i64 rank);

}  // namespace sweep::shape
