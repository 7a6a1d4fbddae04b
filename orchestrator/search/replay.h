// Replay: the order in which a strategy tries trials whose answers are known, as a run would: each answer is
// seen before the next trial is chosen.
#pragma once
#include "orchestrator/search/candidate.h"

namespace sweep::search {

// `answers`: as `all`, each with the standing and the rate that it ends with. The places of those tried, in
// order.
std::vector<std::size_t> replay(std::span<const Candidate> all, std::span<const Candidate> answers,
                                const Strategy&);

}  // namespace sweep::search
