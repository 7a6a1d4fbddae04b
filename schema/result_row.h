// ResultRow: one trial of a sweep with its final answer, as the public view `results` shows it; the one row
// type that tables, heatmaps and exports read. Value and Table: the answer to a person's own SQL.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "schema/metrics.h"
#include "schema/outcome.h"
#include "schema/trial.h"

namespace sweep {

struct ResultRow {
  std::string sweep, trial_id, reason;
  std::string evidence;            // the text of an Evidence, read where it is shown
  State state = State::kFinished;  // the outcome means something only when finished; else: not run yet
  Outcome outcome = Outcome::kPruned;
  std::optional<OomKind> oom_kind;
  Trial trial;
  Metrics metrics;
  i64 attempts = 0;
  std::string rule;  // rule of the plan that pruned the trial
  std::optional<i64> finished_unix_ns;
  std::optional<State> again = {};  // state of a trial that is to be run again; the outcome is the former one
};

using Value = std::variant<std::monostate, i64, double, std::string>;  // monostate: NULL
struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<Value>> rows;
  // Column -> unit, of those that schema/columns.h does not know: a grid's own axes.
  std::map<std::string, std::string> units = {};
};

}  // namespace sweep
