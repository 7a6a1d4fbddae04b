// Chooser: what a strategy wants of one group of candidates: of a question, or of a layout. Each strategy has
// one (schema/strategies.def); it may keep what does not change with results, such as features.
#pragma once
#include <memory>

#include "orchestrator/search/groups.h"

namespace sweep::search {

class Chooser {
 public:
  Chooser() = default;
  Chooser(const Chooser&) = delete;
  Chooser& operator=(const Chooser&) = delete;
  virtual ~Chooser() = default;
  // Adds what may start now, at most `left` trials, or rules out all that wait; never both. By the status of
  // the group's candidates alone: asked twice, it says the same.
  virtual void decide(i64& left, Decision&) = 0;
};

// The candidates and the group outlive what is made.
#define STRATEGY(name, word, ...) \
  std::unique_ptr<Chooser> make_##word(std::span<const Candidate>, const Group&, const Strategy&);
#include "schema/strategies.def"
#undef STRATEGY

// The groups that a strategy decides on one by one; none where it runs every trial.
std::vector<Group> groups_of(std::span<const Candidate>, const Strategy&);

// The most trials that `batch` uses: log2 of the range of micro-batches, and 2; of sizes given as `auto`
// without a prediction of what fits, twice that logarithm.
i64 most_batch_trials(std::span<const Candidate>, const Group& layout, const Strategy&);
// The most trials that `grow` uses: log2 of the number of models, and 2; without a prediction of what fits, also one
// for each doubling of the parameters.
i64 most_grow_trials(std::span<const Candidate>, const Group& setting);

}  // namespace sweep::search
