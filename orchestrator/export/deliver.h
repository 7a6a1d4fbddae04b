// deliver: brings the finished trials of a sweep to a tracker, each once. A run that the journal
// holds unchanged is not sent again. A run that the server refuses does not stop the others. The next export
// sends what is missing.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/export/journal.h"
#include "orchestrator/export/tracker.h"

namespace sweep::exports {

struct Deliveries {
  i64 sent = 0, unchanged = 0, updated = 0;
  std::vector<std::string> refused;         // a sentence each
  std::optional<DeliveryError> stopped_by;  // the rest was not tried
  bool complete() const { return refused.empty() && !stopped_by; }
};

struct DeliveryPlan {
  i64 runs = 0;
  std::function<Expected<TrackerRun>(i64 index)> run;  // read one at a time
  std::function<void(const Deliveries&, i64 index)> progress;
  std::function<bool()> interrupted;
  bool again = false;  // use the server's state instead of the journal's
};

// Error: the database or the journal failed; what the tracker said is in Deliveries.
Expected<Deliveries> deliver(Tracker&, Journal&, const TrackerSweep&, const DeliveryPlan&);

}  // namespace sweep::exports
