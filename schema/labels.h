// Labels of a trial (Trial::labels): a JSON object of scalars, and the units of those that have one.
#pragma once
#include <string_view>

namespace sweep {

// The member that holds the units: an object, name -> unit. No axis and no label can have that name.
inline constexpr std::string_view kLabelUnits = "@units";

}  // namespace sweep
