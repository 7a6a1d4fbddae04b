// Codes of keys for trackers that cannot be used. The subject is the host or where the key comes from.
#pragma once
#include "base/expected.h"

namespace sweep::exports::codes {

inline constexpr ErrorCode kNoKey{"export.no_key"};
inline constexpr ErrorCode kBadKey{"export.bad_key"};                 // cut off, or no key at all
inline constexpr ErrorCode kKeyNotPrivate{"export.key_not_private"};  // others may read or write its file
inline constexpr ErrorCode kHalfALogin{"export.half_a_login"};  // a name without a password, or the reverse

}  // namespace sweep::exports::codes
