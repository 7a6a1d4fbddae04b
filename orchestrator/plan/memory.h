// Memory: bytes the fullest rank of our own step needs, by what holds them: stage by stage, as the step's dry run counts
// them, without the allocator's rounding.
// REQUIRES of every function: a trial without a first_objection (rules.h).
#pragma once
#include <optional>
#include <string>

#include "bench_kernels/shape/catalogue.h"
#include "schema/trial.h"

namespace sweep::plan {

// A count in a floating-point formula.
inline double real(i64 n) {
  return static_cast<double>(n);
}

struct MemoryEstimate {
  double weights = 0, gradients = 0, optimizer = 0;  // model states: a lower bound
  double activations = 0;                            // saved for the backward, of all micro-batches in flight
  double temporary = 0;  // the most at once beside them: logits and loss, a layer's backward, gathered copies
  double states() const { return weights + gradients + optimizer; }
  double total() const { return states() + activations + temporary; }
};

// Bytes of a number in weights, gradients and activations.
double element_bytes(Precision);
MemoryEstimate estimate_memory(const Trial&);
// What a rank may use: the trial's cap, else 95 % of the GPU's memory (context, communication buffers);
// absent: unknown.
std::optional<double> memory_budget(const Trial&, const shape::Hardware&);
// "needs 93.4 GiB per rank (weights 31.2 GiB, ...), budget 76.0 GiB"
std::string memory_sentence(const MemoryEstimate&, double budget);

}  // namespace sweep::plan
