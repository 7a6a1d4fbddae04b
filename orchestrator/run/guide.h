// Guide: tells search::Learner what the store says of a sweep's trials, once when the run begins and of each
// trial that ended; and prunes in the store what the learner rules out. Nothing else of a search is kept, so
// that a run that was interrupted goes on as it would have.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "orchestrator/run/run_context.h"
#include "orchestrator/search/learner.h"

namespace sweep::run {

class Guide {
 public:
  explicit Guide(const RunContext& context) : context_(context) {}
  // False: every trial is run, in the plan's order, but for those that results rule out.
  bool chooses() const { return !context_.settings.strategy.runs_all(); }
  // Before anything else: what the results that are there already say.
  Expected<void> begin();
  void started(const std::string& trial_id);
  // An attempt ended: reads what the store now says of its trial. Returns the ids that this rules out, of a sweep that
  // runs every trial; else none.
  Expected<std::vector<std::string>> finished(const std::string& trial_id);
  // Trials to start now, the best first; those that run are not among them. REQUIRES chooses().
  Expected<std::vector<PlanEntry>> choose();
  // The demand of the chosen trials, with the time that the rest of the search may take.
  std::vector<store::Demand> demand(const std::vector<PlanEntry>& chosen) const;

 private:
  bool learns() const;
  bool is_too_large(const PlanEntry&) const;
  Expected<std::set<std::string>> waiting_for_retry(const std::vector<ResultRow>&) const;
  std::optional<search::Known> known_of(const ResultRow&, std::size_t place, bool waits_for_retry);
  Expected<std::vector<std::string>> rule_out(const std::vector<search::RuledOut>&);

  const RunContext& context_;
  std::vector<PlanEntry> plan_;  // when the run began
  std::unordered_map<std::string, std::size_t> places_;
  std::optional<search::Learner> learner_;
  // Trials that the strategy does not wait for: they run to check their pruning or because a person asks, or they
  // need more nodes than this run may hold.
  std::set<std::size_t> apart_;
  // Trials that the strategy chose and that are tried again: to the learner they run until their result is final.
  std::set<std::size_t> retries_;
  std::string told_;
};

}  // namespace sweep::run
