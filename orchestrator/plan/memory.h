// Memory: bytes one rank needs, by what holds them. Crude: even shards, no allocator rounding, no scratch.
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
  double activations = 0;                            // of the fullest rank, logits included
  double states() const { return weights + gradients + optimizer; }
  double total() const { return states() + activations; }
};

// Bytes of a number in weights, gradients and activations.
double element_bytes(const std::string& precision);
MemoryEstimate estimate_memory(const Trial&);
// What a rank may use: the trial's cap, else 95 % of the GPU's memory (context, communication buffers);
// absent: unknown.
std::optional<double> memory_budget(const Trial&, const shape::Hardware&);
// "needs 93.4 GiB per rank (weights 31.2 GiB, ...), budget 76.0 GiB"
std::string memory_sentence(const MemoryEstimate&, double budget);

}  // namespace sweep::plan
