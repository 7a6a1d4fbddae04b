// Turns what `sweep calibrate` measured into the figures by which `sweep predict` computes. Pure.
#pragma once
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/hardware_profile.h"
#include "orchestrator/predict/trainer_profile.h"

namespace sweep::predict {

// Replaces bandwidths of memory and links, and the table of collectives by number of nodes. Peaks stay the
// catalogue's where it has one: a trainer profile's share of the peak is fitted to that. What was not
// measured stays.
void use_measured(const shape::HardwareProfile&, shape::Hardware&, TrainerProfile&);

}  // namespace sweep::predict
