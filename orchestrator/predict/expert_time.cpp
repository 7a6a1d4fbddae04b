#include "orchestrator/predict/expert_time.h"

#include <algorithm>
#include <cmath>

#include "orchestrator/predict/step_cost.h"

namespace sweep::predict {
namespace {

// One element in each row that goes to an expert.
double row_elements(const Layout& l) {
  return l.batch.tokens * l.experts.top_k * l.model.hidden / l.ranks.tp;
}

// With few rows for each expert its products wait for memory: forward and for the gradient of the input each reads all
// weights of the rank's experts, and gradients of weights are read, added to and written.
double waited_for_weights(const Layout& l, const ProfileFacts& f, double flops, double memory) {
  if (l.base.frozen) return 0;
  const double parameters = l.experts.here * l.experts.parameters / l.ranks.tp;
  const double pass = 2 * l.experts.top_k * l.experts.parameters * l.batch.tokens / l.ranks.tp / flops;
  const double gradient = l.types.fp32 ? 4 : l.types.bf16_gradients ? 2 : f.gradient_bytes;
  return 2 * std::max(0.0, l.types.element * parameters / memory - pass) +
         std::max(0.0, 2 * gradient * parameters / memory - pass);
}

// The number of other nodes, of `nodes`, that have one of a token's experts: its experts are anywhere, or in so many of
// the groups that share the experts (DeepSeek-V3, arXiv 2412.19437, section 2.1.2).
double other_nodes(const Layout& l, double nodes) {
  double missed = std::pow(1 - 1 / nodes, l.experts.top_k);
  if (l.experts.groups_of_token > 0) {
    const double of_node = l.experts.groups / nodes;
    double none = 1;
    for (double i = 0; i < l.experts.groups_of_token; ++i)
      none *= std::max(0.0, (l.experts.groups - of_node - i) / (l.experts.groups - i));
    missed = std::max(missed, none);
  }
  return (nodes - 1) * (1 - missed);
}

}  // namespace

ExpertTime expert_time(const Layout& l, const TrainerProfile& p, double flops, double memory) {
  if (!l.experts.used) return {};
  const ProfileFacts& f = p.facts;
  const double passed = l.types.element * f.expert_passes + (l.experts.bias ? f.expert_bias_traffic : 0);
  const double kernels = l.experts.here * (l.types.fp8 ? f.expert_kernels_fp8 : f.expert_kernels);
  return {row_elements(l) * passed / memory + waited_for_weights(l, f, flops, memory) + kernels * kGpuKernel,
          f.expert_launches * p.time.layer_launch_s + kernels * kGpuLaunch};
}

// Over nodes rows cross the network and then the links inside the node that they came to.
double expert_exchange(const Layout& l, const ProfileFacts& f, const shape::Hardware& h, double joined) {
  if (l.ranks.ep <= 1) return 0;
  constexpr double kTimes = 4;  // there and back, forward and backward
  const double near = std::clamp(joined / l.ranks.tp, 1.0, l.ranks.ep), nodes = l.ranks.ep / near;
  const double rows = kTimes * row_elements(l) * l.types.element;
  if (nodes <= 1) return rows * (l.ranks.ep - 1) / l.ranks.ep / h.intra_node_bandwidth;
  if (f.once_per_node)
    return rows * (near - 1) / near / h.intra_node_bandwidth +
           rows / l.experts.top_k * other_nodes(l, nodes) / h.inter_node_bandwidth;
  return rows * (near - 1) / l.ranks.ep / h.intra_node_bandwidth +
         rows * (1 - 1 / nodes) / h.inter_node_bandwidth;
}

}  // namespace sweep::predict
