// Codes of files and folders that cannot be used; the subject is the path. And of templates.
#pragma once
#include "base/expected.h"

namespace sweep::codes {

inline constexpr ErrorCode kNoSuchFile{"file.not_found"};
inline constexpr ErrorCode kLinkLoop{"file.link_loop"};
inline constexpr ErrorCode kNoPermission{"file.no_permission"};
inline constexpr ErrorCode kIsDirectory{"file.is_directory"};
inline constexpr ErrorCode kNotAFile{"file.not_a_file"};  // a device or a pipe
inline constexpr ErrorCode kFileTooLarge{"file.too_large"};
inline constexpr ErrorCode kUnreadable{"file.unreadable"};
inline constexpr ErrorCode kStale{"file.stale"};  // replaced on a network file system while it was open
inline constexpr ErrorCode kBadTemplate{"template.bad_name"};  // {..} with something else than a known name

}  // namespace sweep::codes
