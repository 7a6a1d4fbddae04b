// Replay gives the order in which a strategy tries trials whose answers are known. As in a run, it sees each answer
// before it chooses the next trial.
#pragma once
#include "orchestrator/search/candidate.h"

namespace sweep::search {

// `answers`: as `all`, each with the standing and the rate that it ends with. The places of those tried, in
// order.
std::vector<std::size_t> replay(std::span<const Candidate> all, std::span<const Candidate> answers,
                                const Strategy&);

}  // namespace sweep::search
