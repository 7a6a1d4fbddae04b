// A prediction as people and programs read it: whether the trial runs, why not, and its figures, as CSV and JSON.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "orchestrator/predict/predict.h"

namespace sweep::predict {

// It does not run by a rule or by memory, or it is too near the limit to know.
struct Verdict {
  bool fits = true, sure = true;
  std::string reason;  // empty: it fits, clearly
};
Verdict verdict_on(const TrialPrediction&, const TrainerProfile&);

// fits, sure, reason, then the figures.
std::vector<std::string> prediction_columns();
// The same of one trial as fields of CSV, appended to the line.
void append_prediction(std::string& line, const TrialPrediction&, const TrainerProfile&);
// The same as members of an object; a figure that is not predicted is null.
void add_prediction(nlohmann::json& object, const TrialPrediction&, const TrainerProfile&);

}  // namespace sweep::predict
