// Observer: the run loop's view for people. It is told what happens and decides nothing.
#pragma once
#include <optional>
#include <string>

#include "orchestrator/store/store.h"
#include "schema/plan_entry.h"
#include "schema/records.h"

namespace sweep::run {

struct Snapshot {
  store::Progress counts;
  double elapsed_s = 0;
  std::optional<double> seconds_left;
  // The best by the metric that results are ranked by where nobody names one.
  std::optional<ResultRow> best;
  std::string best_by;
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_note(const std::string& sentence) = 0;
  // A note that is kept as an event of the sweep, by its kind; on_note() is told too.
  virtual void on_event(EventKind, const std::string& /*text*/) {}
  virtual void on_result(const PlanEntry&, const Result&) = 0;
  virtual void on_snapshot(const Snapshot&) = 0;
};

}  // namespace sweep::run
