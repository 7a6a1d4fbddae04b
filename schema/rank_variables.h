// RankVariables: environment variables that the ranks of a trial get, beside those of their agent: the axis `env` of the
// built-in step, and `env` of a command. It is the one place that says which of them sweep sets itself, or refuses.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace sweep {

using RankVariables = std::map<std::string, std::string>;

// Variables that sweep sets for each rank. A trial that sets one too would break the ranks' meeting or the clean-up.
bool is_set_for_ranks(std::string_view variable);

// The text of an axis: "NAME=VALUE NAME=VALUE", by name; empty: no variable.
std::string text_of(const RankVariables&);
// Reads it, in any order. Error: no name or no value, a value with a blank or a sign that is not printed, a name that is
// there twice, and one that why_not_for_step() refuses.
Expected<RankVariables> rank_variables_from(std::string_view text);
// Why the ranks of the built-in step cannot get this one, as a sentence; empty: they can.
std::string why_not_for_step(std::string_view variable);
// Whether they change what CUDA's caching allocator reserves, so that no model of it holds.
bool change_the_allocator(const RankVariables&);

}  // namespace sweep
