// The time that routed experts cost a layer beside the products of a token's experts: rows that are sorted and exchanged, weights
// and gradients of all experts of a rank, and kernels for each of them.
#pragma once
#include "orchestrator/predict/layout.h"

namespace sweep::predict {

// Seconds of a layer for a micro-batch, forward and backward: of the GPU, and of the host.
struct ExpertTime {
  double gpu = 0, host = 0;
};

// `flops`, `memory`: what products and other kernels reach a second. Nothing without experts.
ExpertTime expert_time(const Layout&, const TrainerProfile&, double flops, double memory);

// Seconds of the links: tokens go to their experts and come back, forward and backward. `joined`: GPUs that fast links join.
double expert_exchange(const Layout&, const ProfileFacts&, const shape::Hardware&, double joined);

}  // namespace sweep::predict
