// Learner: which trials of a plan start next, and which never do, by the results so far. It is told each
// result once; groups, features and what trials have in common are computed when it begins. What it decides
// depends on what is known alone, not on the order in which it was told: a sweep that was interrupted goes on
// as it would have.
#pragma once
#include <set>

#include "orchestrator/search/chooser.h"
#include "orchestrator/search/history.h"

namespace sweep::search {

class Learner {
 public:
  // The plan's trials, with the results that are there already.
  Learner(std::vector<Candidate> all, const Strategy&);
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  void started(std::size_t candidate);
  // Its run ended: with an answer, without one for good, or it waits again.
  void finished(std::size_t candidate, const Known&);
  // Trials that are ruled out are named once; those to start, until they do.
  Decision next();
  i64 waiting() const { return waiting_; }
  bool runs(std::size_t candidate) const { return all_[candidate].status == TrialStatus::kRunning; }

 private:
  void set(std::size_t candidate, const Known&);
  void conclude(std::size_t candidate);
  void rule_out(const RuledOut&);

  std::vector<Candidate> all_;
  Strategy strategy_;
  History history_;
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_;  // index: candidate; empty: every trial is run
  std::vector<std::unique_ptr<Chooser>> choosers_;
  // Groups with something new, and groups where trials wait.
  std::set<std::size_t> changed_, open_;
  i64 running_ = 0, waiting_ = 0;
  std::vector<RuledOut> concluded_;  // since the last decision
};

// The order in which a strategy tries trials whose answers are known. As in a run, it sees each answer before it chooses
// the next trial. `answers`: as `all`, each with the status and the rate that it ends with. The places of those tried,
// in order.
std::vector<std::size_t> replay(std::span<const Candidate> all, std::span<const Candidate> answers,
                                const Strategy&);

}  // namespace sweep::search
