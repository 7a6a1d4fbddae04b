// Groups of candidates: those that answer one question, and those that differ by their micro-batch alone.
#pragma once
#include <vector>

#include "orchestrator/search/candidate.h"

namespace sweep::search {

using Group = std::vector<std::size_t>;

// Same model, hardware and sequence length: `best` names one winner of each.
std::vector<Group> questions(std::span<const Candidate>);

// Same but for micro_batch_size and what follows from it (grad_accum or global_batch_size), the smallest
// micro-batch first.
std::vector<Group> layouts(std::span<const Candidate>);

// Same but for the model, the one with the fewest parameters first.
std::vector<Group> settings_of_models(std::span<const Candidate>);

// The waiting ones of a group, each with the same reason.
void rule_out_rest(std::span<const Candidate>, const Group&, std::string_view rule, const std::string& reason,
                   Decision&);

}  // namespace sweep::search
