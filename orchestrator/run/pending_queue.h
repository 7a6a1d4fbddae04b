// PendingQueue: the trials that wait, read from the store a stretch at a time for each kind of allocation, because
// every such question reads and sorts all of them. It never offers what it was told is handed out; what became
// pending again is seen at the latest when nothing else is left. It decides no order of its own.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "orchestrator/store/store.h"

namespace sweep::run {

class PendingQueue {
 public:
  PendingQueue(store::Store& store, i64 sweep) : store_(store), sweep_(sweep) {}

  // The first of the next `look_ahead` waiting trials that `takes` says yes to; absent: none of them. Without
  // a fit every trial may be offered.
  Expected<std::optional<PlanEntry>> next(const std::optional<store::Fit>&, i64 look_ahead,
                                          const std::function<bool(const PlanEntry&)>& takes);
  // What waits, by what it needs.
  Expected<std::vector<store::Demand>> demand();
  Expected<i64> waiting_nodes(const std::string& hardware);  // of its trials, one beside the other

  void handed_out(const PlanEntry&);
  void changed();  // trials may be pending again

 private:
  struct Page {
    std::deque<PlanEntry> trials;
    std::unordered_set<std::string> gone;  // handed out since it was read
    i64 version = -1;
    bool whole = false;  // nothing beyond it waited
  };
  const PlanEntry* look(Page&, i64 look_ahead, const std::function<bool(const PlanEntry&)>& takes);
  Expected<void> read(Page&, const std::optional<store::Fit>&);

  store::Store& store_;
  i64 sweep_;
  i64 version_ = 0;
  std::map<std::tuple<i64, std::string, i64>, Page> stretches_;
  std::optional<std::vector<store::Demand>> demand_;
};

}  // namespace sweep::run
