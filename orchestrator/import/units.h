// Units: what a number in a file is multiplied by to be in the unit that fields.def states for its field.
#pragma once
#include <string_view>

#include "base/expected.h"

namespace sweep::imports {

// Error: the unit does not measure what the field measures; names those that do.
Expected<double> factor_to(std::string_view field_unit, std::string_view stated);
// More than one unit is in use for what this field measures: a file must say which one it means.
bool is_ambiguous(std::string_view field_unit);
std::string units_for(std::string_view field_unit);  // "B, kB, MB, ..."

}  // namespace sweep::imports
