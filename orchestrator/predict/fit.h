// Fit: the parameters of a trainer profile from measured rows, by robust least squares (soft L1: one row that
// is far off counts little). Facts stay; the memory limit moves so that at most 1 of 200 rows that ran is
// predicted as not runnable.
#pragma once
#include <span>

#include "orchestrator/predict/layout.h"
#include "orchestrator/predict/trainer_profile.h"

namespace sweep::predict {

struct MeasuredRow {
  Layout layout;
  bool ran = false;           // false: it failed
  double reported_bytes = 0;  // 0: not stated
  double step_s = 0;          // 0: not stated
};

// Error: too few rows.
Expected<TrainerProfile> fit_profile(const TrainerProfile& start, std::span<const MeasuredRow>,
                                     const shape::Hardware&);

}  // namespace sweep::predict
