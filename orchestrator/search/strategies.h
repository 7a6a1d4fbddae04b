// The strategies behind decide(), one function each. `left`: how many trials may start now. A function starts
// none that it rules out.
#pragma once
#include "orchestrator/search/groups.h"

namespace sweep::search {

void decide_few_trials(std::span<const Candidate>, const Group& question, const Strategy&, i64& left,
                       Decision&);
void decide_micro_batch(std::span<const Candidate>, const Group& layout, const Strategy&, i64& left,
                        Decision&);

void decide_playbook(std::span<const Candidate>, const Group& question, const Strategy&, i64& left,
                     Decision&);

// The most trials that decide_micro_batch uses: log2 of the range of micro-batches, and 2; of sizes given as
// `auto` without a prediction of what fits, twice that logarithm.
i64 most_batch_trials(std::span<const Candidate>, const Group& layout, const Strategy&);

}  // namespace sweep::search
