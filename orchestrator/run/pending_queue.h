// PendingQueue: the trials that wait, read from the store one page at a time for each kind of allocation,
// because each such query reads and sorts all of them. It never offers a trial that was handed out. One that
// became pending again is offered at the latest when nothing else is left. The order is the store's.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "orchestrator/run/guide.h"
#include "orchestrator/store/store.h"

namespace sweep::run {

class PendingQueue {
 public:
  // guide: it chooses what is offered; null: every waiting trial is.
  PendingQueue(store::Store& store, i64 sweep, Guide* guide = nullptr)
      : store_(store), sweep_(sweep), guide_(guide) {}

  // The first of the next `look_ahead` waiting trials that `takes` accepts; nullopt: none of them. Without a
  // fit every trial may be offered.
  Expected<std::optional<PlanEntry>> next(const std::optional<store::Fit>&, i64 look_ahead,
                                          const std::function<bool(const PlanEntry&)>& takes);
  // The waiting trials, grouped by what they need.
  Expected<std::vector<store::Demand>> demand();
  // Nodes that the waiting trials of this hardware need side by side.
  Expected<i64> waiting_nodes(const std::string& hardware);

  void handed_out(const PlanEntry&);
  // Trials that are not run after all.
  void withdraw(const std::vector<std::string>& ids);
  // Trials may be pending again, or others are worth a trial.
  void changed();
  // An attempt ended so.
  void ended(Outcome);

 private:
  struct Page {
    std::deque<PlanEntry> trials;
    // Handed out since it was read.
    std::unordered_set<std::string> gone;
    i64 version = -1;
    // Nothing beyond it waited.
    bool whole = false;
  };
  const PlanEntry* look(Page&, i64 look_ahead, const std::function<bool(const PlanEntry&)>& takes);
  Expected<void> read(Page&, const std::optional<store::Fit>&);
  Expected<void> read_chosen(Page&, const std::optional<store::Fit>&);
  Expected<void> ask_guide();

  store::Store& store_;
  i64 sweep_;
  Guide* guide_;
  // Trials that the guide chose and that were not handed out since.
  std::optional<std::vector<PlanEntry>> chosen_;
  i64 version_ = 0;
  std::map<std::tuple<i64, std::string, i64>, Page> pages_;
  std::optional<std::vector<store::Demand>> demand_;
};

}  // namespace sweep::run
