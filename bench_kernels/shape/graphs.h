// This says what a step that runs as CUDA graphs cannot be combined with, and when its graphs are there.
#pragma once
#include <optional>
#include <string>

#include "bench_kernels/shape/step_sizes.h"
#include "schema/trial.h"

namespace sweep::shape {

// Steps before one that only launches graphs: the first makes what lasts, the second is captured.
inline constexpr int kStepsBeforeGraphs = 2;

// Why forward and backward of the trial cannot be captured as graphs, as a sentence;
// nullopt: they can, or cuda_graph is false.
std::optional<std::string> graph_objection(const Trial&, KernelPath);

}  // namespace sweep::shape
