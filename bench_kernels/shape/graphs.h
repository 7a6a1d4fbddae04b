// What a step that runs as CUDA graphs cannot be combined with.
#pragma once
#include <optional>
#include <string>

#include "bench_kernels/shape/step_sizes.h"
#include "schema/trial.h"

namespace sweep::shape {

// Why forward and backward of the trial cannot be captured as graphs, as a sentence;
// nullopt: they can, or cuda_graph is false.
std::optional<std::string> graph_objection(const Trial&, KernelPath);

}  // namespace sweep::shape
