// The kinds of errors, as `--json` prints them (docs/json.md). A message may be reworded; a kind stays.
#pragma once
#include <array>
#include <cstddef>
#include <string_view>

namespace sweep {

enum class ErrorKind {
  kFailed,        // Nothing below fits; only the message says what is wrong.
  kInvalidValue,  // A value, a text or the content of a file is not allowed there.
  kUnknownName,   // A key, axis, model, metric or column is none of those that are known there.
  kMissing,       // Something that is needed was not given.
  kConflict,      // Two things exclude each other, or one thing is given twice.
  kNotFound,      // The file, sweep, trial or result does not exist.
  kUnreadable,    // The file exists, but it cannot be read or it is damaged.
  kUnwritable,    // The file or folder cannot be written.
  kDiskFull,      // No space is left, or a quota is used up. The same command goes on once there is space.
  kUnsupported,   // The request is understood, but this version or this machine cannot do it.
  kRefused,       // It could be done, but it would be unsafe, lose something, or exceed a limit.
  kBusy,          // Another process holds it. The same command may work later.
};

inline constexpr std::array<std::string_view, 12> kErrorKindWords = {
    "failed",     "invalid_value", "unknown_name", "missing",     "conflict", "not_found",
    "unreadable", "unwritable",    "disk_full",    "unsupported", "refused",  "busy"};

constexpr std::string_view word_of(ErrorKind kind) {
  return kErrorKindWords[static_cast<std::size_t>(kind)];
}

}  // namespace sweep
