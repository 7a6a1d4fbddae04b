// Text with names in braces, as command lines and files of a grid's command use it: "--lr {lr}". A brace that
// is meant is doubled: "{{" and "}}".
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"

namespace sweep::templates {

// The names in braces, in order; a name that comes twice is listed twice. Error: a brace without its
// partner, or a name with anything but letters, digits and underscores.
Expected<std::vector<std::string>> names_in(std::string_view text);

// The value of a name; none: the name stays as it is, for a later call.
using ValueOf = std::function<std::optional<std::string>(std::string_view name)>;
// Puts values in the place of names, and leaves a template: a brace in a value is doubled, doubled braces
// stay.
Expected<std::string> fill(std::string_view text, const ValueOf&);
// Does the same as fill() and ends the filling: doubled braces become single ones. Error: a name without a
// value.
Expected<std::string> finish(std::string_view text, const ValueOf&);

}  // namespace sweep::templates
