#include "bench_kernels/shape/graphs.h"

#include <fmt/format.h>

#include "bench_kernels/shape/model_states.h"

namespace sweep::shape {
namespace {

struct NotCaptured {
  bool (*asked)(const Trial&);
  const char* what;
};

// A graph repeats what the host did when it was captured: nothing in it may depend on the host later.
constexpr NotCaptured kNotCaptured[] = {
    {[](const Trial& t) { return t.pp > 1; }, "pp above 1: stages wait for each other's messages; use pp 1"},
    {[](const Trial& t) { return t.spec.experts > 0 && t.routing == Routing::kLearned; },
     "routing learned: the host reads how many rows each expert has; use routing balanced or skewed"},
    {[](const Trial& t) { return t.packing; },
     "packing: the host knows where documents end; leave packing out"},
    {[](const Trial& t) {
       return t.world() > 1 && (t.backend == CommBackend::kGloo || t.backend == CommBackend::kShm);
     },
     "a backend other than nccl: its messages go through host memory; use backend nccl"},
    {scales_loss, "precision fp16 or fp16_amp: its loss scale changes from step to step; use bf16_mixed"},
    {[](const Trial& t) { return parameters_outside(t) || t.activation_offload; },
     "offloaded parameters or activations: host memory is taken and given back; use offload none"},
};

}  // namespace

std::optional<std::string> graph_objection(const Trial& t, KernelPath path) {
  if (!t.cuda_graph) return std::nullopt;
  if (path == KernelPath::kProcessor)
    return fmt::format("cuda_graph needs a GPU, and hardware is {}", t.hardware);
  for (const NotCaptured& each : kNotCaptured)
    if (each.asked(t)) return fmt::format("cuda_graph with {}", each.what);
  return std::nullopt;
}

}  // namespace sweep::shape
