// MemoryHistory: in a sweep that runs every trial, prunes those whose end follows from a trial that has ended
// (search/history.h). Trials that a strategy chooses are judged by the same rules in search::decide().
#pragma once
#include <string>
#include <vector>

#include "orchestrator/run/run_context.h"
#include "orchestrator/search/candidate.h"

namespace sweep::run {

class MemoryHistory {
 public:
  explicit MemoryHistory(const RunContext& context) : context_(context) {}
  // By the results that the sweep has when a run begins.
  Expected<void> begin();
  // By one that came. The ids of the trials that it rules out.
  Expected<std::vector<std::string>> ended(const std::string& trial_id, Outcome, std::optional<OomKind>);

 private:
  bool concludes_from(Outcome) const;
  Expected<void> read_plan();

  const RunContext& context_;
  std::vector<PlanEntry> plan_;                // empty: not read yet
  std::vector<search::Candidate> candidates_;  // of those that were admitted and not ruled out since
};

}  // namespace sweep::run
