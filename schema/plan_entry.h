// PlanEntry: a trial with the planner's decision: admitted, or pruned with the rule and the reason.
#pragma once
#include <optional>
#include <string>

#include "schema/outcome.h"
#include "schema/trial.h"

namespace sweep {

struct Prediction {
  std::optional<i64> bytes;       // peak device bytes of the fullest rank
  std::optional<double> step_ms;  // one step
  std::optional<double> seconds;  // the whole attempt: start-up, warm-up, steps
};

struct PlanEntry {
  std::string id;  // trial id
  Trial trial;
  bool admitted = true;
  Outcome verdict = Outcome::kPruned;  // verdict on an entry that was not admitted: kPruned or kUnsupported
  // Rule that pruned it: rank_algebra, divisibility, memory, where, exclude, unsupported, ...
  std::string rule;
  std::string reason;  // a sentence with the equation or the numbers, if it was pruned
  Prediction predicted;
  i64 order = 0;       // place in the run order
  std::string source;  // file:line of the grid that gave it
};

}  // namespace sweep
