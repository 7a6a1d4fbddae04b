// Predicted times corrected by the results that a database has already: of other sweeps on the same hardware, of the
// same step, or of commands that run the same script. The model is that of `search`: a factor common to all, a part for
// each axis and one for their combination.
#pragma once
#include <string>
#include <vector>

#include "base/expected.h"
#include "orchestrator/predict/predictor.h"
#include "schema/plan_entry.h"

namespace sweep::driver {

struct MeasuredTrial {
  std::string id;
  Trial trial;
  double step_ms = 0;
};

// The newest results that were measured for other sweeps than this one, newest first. Rehearsals and imported rows are
// no measurements of this database. A file that is not there has none.
Expected<std::vector<MeasuredTrial>> measured_trials(const std::string& db, const std::string& but_sweep);

// Corrects Prediction::step_ms and Prediction::seconds of admitted trials where five results or more say by how much
// `predictor` is off. Returns a sentence for each kind of trial that it corrects. `plan`: how entries are measured.
std::vector<std::string> correct_times(std::vector<PlanEntry>&, const MeasurePlan& plan,
                                       const predict::Predictor&, const std::vector<MeasuredTrial>&);

}  // namespace sweep::driver
