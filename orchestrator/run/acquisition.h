// Acquisition: which allocations are requested and which requests are withdrawn, by the trials that wait, the
// hosts that can be used and the bounds of the run.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/run/allocations.h"
#include "orchestrator/run/excluded_hosts.h"
#include "orchestrator/run/pending_queue.h"

namespace sweep::run {

// Trials that need the same, and the hosts that are given by name for them; no room: a scheduler finds the
// nodes.
struct RoomForGroup {
  store::Demand group;
  std::optional<launch::Room> room;
};
// A sentence on the trials for which there are too few hosts. Empty: none.
std::string too_few_hosts(const std::vector<RoomForGroup>&, const std::vector<std::string>& quarantined);

class Acquisition {
 public:
  Acquisition(const RunContext& context, Allocations& allocations, PendingQueue& queue, ExcludedHosts& hosts)
      : context_(context), allocations_(allocations), queue_(queue), hosts_(hosts) {}

  struct Result {
    // Trials wait for a host that is requested again in a moment.
    bool waits = false;
    // Why none of the trials that wait can ever be run; nullopt: some can, or none waits.
    std::optional<std::string> nothing_fits;
  };
  // Requests what the waiting trials are worth.
  Expected<Result> request_wanted();
  // Ends allocations that have not started and that no waiting trial needs any more.
  Expected<void> release_unwanted();

 private:
  Expected<std::vector<store::Demand>> demand();
  Expected<void> request_for(const std::vector<RoomForGroup>&);
  std::optional<launch::Room> room_for(const store::Demand&) const;
  Expected<std::optional<std::string>> unfit(const std::vector<RoomForGroup>&);

  const RunContext& context_;
  Allocations& allocations_;
  PendingQueue& queue_;
  ExcludedHosts& hosts_;
  // The last sentence that people were told.
  std::string told_;
};

// The trials that the allocation can take; nullopt: all of them.
std::optional<store::Fit> fit_of(const HeldAllocation&, const Settings&);

}  // namespace sweep::run
