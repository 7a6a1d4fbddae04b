// Codes of spool files that cannot be appended to; the subject is the file.
#pragma once
#include "base/expected.h"

namespace sweep::codes {

inline constexpr ErrorCode kMissingBytes{"spool.missing_bytes"};  // before those that are to be appended
inline constexpr ErrorCode kCutByOthers{"spool.cut_by_others"};   // by another process, since it was written

}  // namespace sweep::codes
