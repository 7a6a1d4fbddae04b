#include "bench_kernels/parallel/step_graphs.h"

#include <ATen/ATen.h>

namespace sweep::parallel {

void StepGraphs::take(const model::MicroBatch& micro) {
  if (!tokens_.defined()) tokens_ = at::empty_like(micro.tokens), labels_ = at::empty_like(micro.labels);
  TORCH_CHECK(tokens_.sizes() == micro.tokens.sizes(),
              "the graphs were captured for micro-batches of another size");
  tokens_.copy_(micro.tokens), labels_.copy_(micro.labels);
}

model::MicroBatch StepGraphs::taken(model::MicroBatch micro) const {
  micro.tokens = tokens_, micro.labels = labels_;
  return micro;
}

StepGraphs::Sent StepGraphs::sent() const {
  Sent out;
  for (std::size_t d = 0; d < out.size(); ++d) out[d] = mesh_[static_cast<Dimension>(d)].traffic();
  return out;
}

void StepGraphs::run(const Key& key, const std::function<void()>& work) {
  if (step_ < shape::kStepsBeforeGraphs) return work();
  Graph& graph = graphs_[key];
  if (!graph.captured) {
    if (graphs_.size() == 1) pool_ = comm::cuda_plugin()->graph_pool();
    const Sent before = sent();
    graph.captured = comm::cuda_plugin()->capture(pool_, work);
    graph.sent = sent();
    for (std::size_t d = 0; d < before.size(); ++d) graph.sent[d] = graph.sent[d].since(before[d]);
  } else {
    for (std::size_t d = 0; d < graph.sent.size(); ++d) mesh_[static_cast<Dimension>(d)].count(graph.sent[d]);
  }
  graph.captured->launch();
}

void StepGraphs::forget() {
  graphs_.clear();
  step_ = 0;
}

}  // namespace sweep::parallel
