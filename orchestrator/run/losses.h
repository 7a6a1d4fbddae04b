// Losses: counts the allocations that were lost, excludes the hosts that lost them, and ends the run when too
// many were lost in a row. Its rules are in failure_policy.h.
#pragma once
#include <optional>

#include "orchestrator/run/excluded_hosts.h"
#include "orchestrator/run/failure_policy.h"
#include "orchestrator/run/held_allocation.h"
#include "orchestrator/run/run_context.h"

namespace sweep::run {

class Losses {
 public:
  explicit Losses(const RunContext& context)
      : context_(context),
        hosts_({context.settings.host_cooldown_s, context.settings.quarantine_initial_s}) {}

  // Before anything is requested: hosts that earlier runs excluded.
  Expected<void> begin();
  // An allocation had a result.
  void reset() { counts_ = {}; }
  // others_at_work: allocations that run now. Returns why the run ends; nullopt: it goes on.
  Expected<std::optional<std::string>> lost(const HeldAllocation&, const launch::Ended&, i64 others_at_work);
  ExcludedHosts& hosts() { return hosts_; }

 private:
  std::string sentence(Breaker, const std::string& last_reason) const;

  const RunContext& context_;
  ExcludedHosts hosts_;
  LossCounts counts_;
};

}  // namespace sweep::run
