// Guide: which trials a strategy starts next, decided anew from the database each time, so that a run that
// was interrupted goes on as it would have. Trials that the strategy never starts are pruned in the store.
// The decision itself is search::decide().
#pragma once
#include <map>
#include <string>
#include <vector>

#include "orchestrator/run/run_context.h"
#include "orchestrator/search/candidate.h"

namespace sweep::run {

class Guide {
 public:
  explicit Guide(const RunContext& context) : context_(context) {}
  // False: every trial is run, in the plan's order.
  bool chooses() const { return !context_.settings.strategy.runs_all(); }
  // To start now, the best first; those that run are not among them.
  Expected<std::vector<PlanEntry>> choose();
  // Of the chosen ones, with the time that the rest of the search may take.
  std::vector<store::Demand> demand(const std::vector<PlanEntry>& chosen) const;

 private:
  Expected<void> read_plan();
  Expected<std::vector<search::Candidate>> candidates();
  Expected<void> rule_out(const std::vector<search::RuledOut>&);

  const RunContext& context_;
  std::vector<PlanEntry> plan_;  // admitted when the run began
  std::map<std::string, std::size_t, std::less<>> places_;
  std::vector<std::size_t> audited_;  // that wait, and are run to check their pruning
  i64 waiting_ = 0;                   // the others
  std::string told_;
};

}  // namespace sweep::run
