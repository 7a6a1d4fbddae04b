// Text forms that the writers of this room share.
#pragma once
#include <string>
#include <string_view>

namespace sweep::exports {

inline constexpr std::string_view kWriteFailed =
    "Writing the export failed (a full disk, or the reading end closed); what was written so far is "
    "incomplete.";

std::string shortest(double);              // reads back to the same double; empty when not finite
std::string valid_utf8(std::string_view);  // invalid bytes become U+FFFD, NUL too

}  // namespace sweep::exports
