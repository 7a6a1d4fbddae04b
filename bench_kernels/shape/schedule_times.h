// When each computation of a pipeline schedule runs. Pure.
#pragma once
#include <span>

#include "bench_kernels/shape/schedule.h"

namespace sweep::shape {

// Costs of one micro-batch in one rank's share of the layers (all its chunks), in any unit. If the schedule
// splits the backward, the weight part is taken from it.
struct Costs {
  double forward = 1, backward = 2, backward_weight = 1;
};

// The cost of one computation of a rank.
double cost_of(const Pipeline&, const Costs&, Act);

// A computation in its time.
struct Span {
  Action action;
  double start = 0, end = 0;
};

// Each rank runs its computations in the given order, each as soon as its input is there; messages take no
// time. A computation that never gets its input is missing, and so are those after it.
std::vector<std::vector<Span>> run_computations(const Pipeline&, const std::vector<ActionList>& computations,
                                                const Costs&);
// The same with costs for each rank. REQUIRES: as many as ranks.
std::vector<std::vector<Span>> run_computations(const Pipeline&, const std::vector<ActionList>& computations,
                                                std::span<const Costs>);

}  // namespace sweep::shape
