// ImportedRow: one measurement made elsewhere: its configuration with the place it came from, and how
// it ended. Without a result it was pruned: never run. ConfigRow: a configuration to predict, or one that was
// measured and that predictions are compared with.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "schema/plan_entry.h"
#include "schema/records.h"

namespace sweep {

struct ImportedRow {
  PlanEntry entry;
  std::optional<Result> result;
};

// A row whose trial has not finished, or was cancelled.
struct UnansweredRow {
  std::string trial;   // its id
  std::string source;  // file:line
};

struct ConfigRow {
  std::size_t line = 0;            // line of the file
  std::vector<std::string> cells;  // the fields as the file has them
  Trial trial;
  std::optional<Outcome> outcome;  // the measured outcome
  bool unanswered = false;         // the row says that it has no outcome: pending, cancelled, its node lost
  double reported_bytes = 0;       // bytes as the program counts them; 0: not stated
  double reserved_bytes = 0;       // bytes of the device; 0: not stated
  double tokens_per_s_gpu = 0;     // 0: not stated
  double step_s = 0;               // 0: not stated; else the rate says the same
  std::string trainer;             // the trainer whose configuration it is; "": not stated
  bool ran() const {
    return !unanswered && tokens_per_s_gpu > 0 && outcome.value_or(Outcome::kOk) == Outcome::kOk;
  }
};

}  // namespace sweep
