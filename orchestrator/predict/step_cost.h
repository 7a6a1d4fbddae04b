// The time of one step of our own on hardware of which a profile says what products, memory, launches and
// collectives cost (`sweep calibrate` measures it; where it has not, the catalogue's figures make one). Pure.
#pragma once
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/hardware_profile.h"
#include "bench_kernels/shape/kernel_work.h"
#include "schema/trial.h"

namespace sweep::predict {

// Assumptions about a GPU that nobody measured: seconds of the host for a launch and of the GPU for a kernel's start and end;
// the share of the memory's bandwidth that kernels reach which only stream.
inline constexpr double kGpuLaunch = 5e-6, kGpuKernel = 2e-6, kGpuMemory = 0.7;
// Pieces that tp_overlap divides an exchange into: the bytes of the first one are waited for.
inline constexpr double kOverlapPieces = 4;

// Parts of step_s. What communication hides behind computing is not counted.
struct StepCost {
  double compute_s = 0;   // time of the slowest stage: products, memory-bound parts, launches
  double pipeline_s = 0;  // time that the walk through the schedule adds: fill, drain, messages
  double tensor_s = 0, context_s = 0, expert_s = 0, data_parallel_s = 0, optimizer_s = 0, offload_s = 0;
  double step_s = 0;
};

// REQUIRES: a trial without a first_objection (rules.h).
StepCost step_cost(const Trial&, const shape::HardwareProfile&, const shape::Hardware&);
// The same with other kernels than the trial's.
StepCost step_cost(const Trial&, const shape::HardwareProfile&, const shape::Hardware&,
                   const shape::KernelChoice&);

// The trainer profile of our step describes full training of decoders in its default kernels, with fused AdamW on the
// device. This is the trial without what it has beside that: adapters, a quantized base, another optimizer, offloading,
// an encoder, states of other types, and axes that its time model does not read.
Trial fitted_part(Trial);
// Whether a trial equals its fitted part.
bool is_fitted(const Trial&, const Trial& fitted);
// How many times as long the trial's step takes as that of its fitted part, by step_cost on the catalogue's figures, without
// the time that making values of a quantized base takes.
double beyond_fitted(const Trial&, const Trial& fitted, const shape::Hardware&);

// A profile of the catalogue's figures: its peaks and bandwidths, at shares that training reaches.
shape::HardwareProfile catalogue_profile(const shape::Hardware&);

}  // namespace sweep::predict
