// Fit: the numbers of a trainer profile from measured rows, by robust least squares (soft L1: one row that is far off
// counts little). Facts stay, but that the memory limit moves so that at most 1 of 200 rows that ran is predicted as
// not runnable.
#pragma once
#include <span>
#include <vector>

#include "orchestrator/predict/memory_model.h"
#include "schema/imported_row.h"

namespace sweep::predict {

struct MeasuredRow {
  Trial trial;
  Layout layout;
  bool refused = false;       // the profile's memory model refused it
  bool ran = false;           // false: it failed
  double reported_bytes = 0;  // 0: not stated
  double step_s = 0;          // 0: not stated
};

// The rows as a fit under this profile takes them.
std::vector<MeasuredRow> measured_rows(const TrainerProfile& start, std::span<const ConfigRow>, StepRules);

// The last of its origins is the fit's, without a date. Error: too few rows.
Expected<TrainerProfile> fit_profile(const TrainerProfile& start, std::span<const MeasuredRow>,
                                     const shape::Hardware&);

}  // namespace sweep::predict
