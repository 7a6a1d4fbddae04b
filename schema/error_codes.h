// Codes of what a process sends or a file holds that this version cannot take. The subject is the key or name.
#pragma once
#include "base/expected.h"

namespace sweep::codes {

inline constexpr ErrorCode kBadVariable{"command.bad_variable"};  // of a command's environment

}  // namespace sweep::codes
