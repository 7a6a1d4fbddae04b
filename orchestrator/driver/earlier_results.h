// A plan takes from earlier results: values for axes that a grid leaves unset, and corrections of predicted times.
#pragma once
#include <string>
#include <vector>

#include "base/expected.h"
#include "orchestrator/grid/grid.h"
#include "orchestrator/predict/predictor.h"
#include "schema/plan_entry.h"

namespace sweep::driver {

// Suggested: values for the axes that a grid leaves unset, taken from the best earlier result of its model. They become
// the section `suggested` of the grid, which overrides nothing, so that a stored sweep holds them.
struct Suggested {
  grid::Grid grid;                  // the grid with the values
  std::vector<std::string> said{};  // a sentence for the source, and one for each value
  bool again = false;               // they are those that the sweep of this name has
};

// REQUIRES: the grid was read with these options. Error: the database has no result of its model on such hardware, or the grid
// asks about several models or machines, or runs a command.
Expected<Suggested> with_suggested(grid::Grid, const grid::ReadOptions&, const std::string& db);

// Predicted times corrected by the results that a database has already: of other sweeps on the same hardware, of the
// same step, or of commands that run the same script. The model is that of `search`: a factor common to all, a part for
// each axis and one for their combination.
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
