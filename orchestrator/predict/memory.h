// Memory of a trial under our own step: bytes of the fullest rank by part (shape/step_memory.h), and what it
// may use. REQUIRES of every function: a trial without a first_objection (rules.h).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/step_memory.h"
#include "schema/trial.h"

namespace sweep::predict {

using shape::real;

struct MemoryEstimate {
  std::vector<shape::RankMemory> of_ranks;  // ranks of the pipeline; zero: not asked for
  std::size_t fullest = 0;
  const shape::RankMemory& parts() const { return of_ranks[fullest]; }
  double of(shape::MemoryPart part) const { return parts()[part]; }
  // Model states: what nothing avoids at the update.
  double states() const {
    return of(shape::MemoryPart::kWeights) + parts().all_gradients + of(shape::MemoryPart::kOptimizer);
  }
  double total() const { return parts().total(); }
};

// Bytes of a number in weights, gradients and activations.
double element_bytes(Precision);
MemoryEstimate estimate_memory(const Trial&, shape::Ranks = shape::Ranks::kFullest);
// The memory that a rank may use: the trial's cap, else 95 % of the GPU's memory (context, communication
// buffers); nullopt: unknown.
std::optional<double> memory_budget(const Trial&, const shape::Hardware&);
// "needs 93.4 GiB per rank (weights 31.2 GiB, ...), budget 76.0 GiB"
std::string memory_sentence(const MemoryEstimate&, double budget);

}  // namespace sweep::predict
