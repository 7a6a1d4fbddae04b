// Fit: the numbers of a trainer profile from measured rows, of times, of memory or of both, by robust least squares
// (soft L1: one row that is far off counts little) around the start's numbers: what few rows do not determine stays
// there. What is left of the times is the profile's residual. Facts stay, but for the limit of memory: it rises so that
// at most 1 of 200 rows that ran is predicted as not runnable, and from what failed below it on nothing is sure.
#pragma once
#include <optional>
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
  bool by_memory = false;     // it failed: out of memory, or nobody says by what
};

// The rows as a fit under this profile takes them.
std::vector<MeasuredRow> measured_rows(const TrainerProfile& start, std::span<const ConfigRow>, StepRules,
                                       const shape::Hardware&);

// Relative errors of rows that the fit had not seen: each fifth of the layouts predicted by a fit of the others.
struct LeftOut {
  double mean = 0, nine_of_ten = 0;
};

struct FitReport {
  std::size_t times = 0, memories = 0;  // rows that state one
  std::optional<LeftOut> time, memory;
  bool residual = false;  // the profile has one: it helps with rows left out
  // How far each fitted number may still be off, in the order of the profile; of time as a logarithm.
  std::vector<double> time_doubt;
  // Numbers of the times that the rows tell little of: more than half of the doubt is left.
  std::vector<std::string> left_near_start;
};

struct Fitted {
  TrainerProfile profile;  // the last of its origins is the fit's, without a date
  FitReport report;
};

// `held`: names of numbers that stay as they are. Error: fewer than five rows state a time, and fewer than five state
// memory.
Expected<Fitted> fit_profile(const TrainerProfile& start, std::span<const MeasuredRow>,
                             const shape::Hardware&, const std::vector<std::string>& held = {});

}  // namespace sweep::predict
