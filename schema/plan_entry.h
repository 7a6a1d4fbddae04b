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
  Outcome verdict = Outcome::kPruned;  // of one that was not admitted: kPruned or kUnsupported
  std::string rule;  // of a pruned one: rank_algebra, divisibility, memory, where, exclude, unsupported, ...
  std::string reason;  // of a pruned one: a sentence with the equation or the numbers
  Prediction predicted;
  i64 order = 0;       // place in the run order
  std::string source;  // file:line of the grid that gave it
};

}  // namespace sweep
