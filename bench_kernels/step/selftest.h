// Proof: what a step laid out over its ranks computes and costs, against the plain step of one rank and
// against the closed forms: the table of `sweep selftest`. It measures distances and finds faults; it judges
// no tolerance.
#pragma once
#include <utility>
#include <vector>

#include "bench_kernels/step/train_step.h"
#include "schema/records.h"

namespace sweep::step {

// A tiny gradient's update is a coin toss with the usual epsilon; with this one parameters can be compared.
// The learning rate is large enough that an update shows.
inline constexpr optim::OptimizerOptions kProofOptimizer{.lr = 1e-3, .eps = 1e-3};

struct ProofInput {
  const Trial& trial;
  at::Device device;
  parallel::Mesh& mesh;
  TrainStep& step;                             // built with kProofOptimizer
  std::vector<std::pair<double, i64>> losses;  // one for each step: this rank's mean and its tokens
  i64 peak_bytes = 0;                          // peak of this rank's device in them, less its baseline
};

// Runs one more step, the same model and global batch on this rank's CPU alone, and every collective. The distances
// are those of a step, and of this rank's shares of tensors. A collective of all ranks.
Proof prove(const ProofInput&);

}  // namespace sweep::step
