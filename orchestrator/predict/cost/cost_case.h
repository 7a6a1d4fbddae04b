// CostCase: a trial on hardware of which a profile says what products, memory, launches and links cost, and the sizes on one
// rank that the parts of a step's cost share: its layers (layer_cost.h), its exchanges (exchange_cost.h), its update
// (update_cost.h). pipeline_cost.h puts layers into stages.
#pragma once
#include "bench_kernels/shape/adapters.h"
#include "bench_kernels/shape/kernel_work.h"
#include "orchestrator/predict/layout.h"
#include "orchestrator/predict/step_cost.h"

namespace sweep::predict {

// Bytes per second between a GPU and pinned host memory: assumed, of the 31.5 GB/s of PCIe 4.0's standard (16 lanes).
inline constexpr double kHostLink = 25e9;

// Parameters of a stage and tensor-parallel rank: those that every rank of ep has, and the experts of all of them.
struct RankParameters {
  double dense = 0, experts = 0;
};
// The same by whether the step changes them.
struct StepParameters {
  RankParameters trained, frozen;
};

struct CostCase {
  CostCase(const Trial&, const shape::HardwareProfile&, const shape::Hardware&, const shape::KernelChoice&);

  const Trial& trial;
  const shape::HardwareProfile& profile;
  const shape::Hardware& hardware;
  const ProfileFacts& facts;  // of our step
  shape::KernelChoice kernels;
  shape::Adapters adapters;
  double tp = 1, element = 4;
  double tokens = 0;  // of a micro-batch on this rank
  // Columns of the residual stream, and of a rank's queries and keys; of the whole MLP.
  double hidden = 0, width = 0, kv_width = 0, intermediate = 0;

  bool on_gpu() const { return !hardware.gpu.empty(); }
  // Seconds to move so many bytes in the device's memory.
  double memory(double bytes) const;
  // Products of an MLP that read its input.
  double gates() const { return trial.spec.swiglu ? 2 : 1; }
  // MLPs of a layer on a rank: its experts, or one.
  double mlps() const { return trial.spec.experts > 0 ? real(trial.spec.experts) / real(trial.ep) : 1; }
  // Parameters of the routed experts of the whole model.
  double expert_parameters() const;
  // Rows of the busiest rank's experts over an even share.
  double expert_load() const;
};

}  // namespace sweep::predict
