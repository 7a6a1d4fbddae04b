// Labels of a trial by name: axes of its workload, and what the grid derives.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "orchestrator/search/candidate.h"

namespace sweep::search {

using Labels = std::map<std::string, nlohmann::json>;
Labels labels_of(const Trial&);

// Labels that are axes of their own: they take several values where all else is the same. What `derive`
// computes takes one.
std::set<std::string> own_axes(std::span<const Candidate>);

// The value of an axis, or of a label, as text.
std::string value_text(const Trial&, const std::string& name);

}  // namespace sweep::search
