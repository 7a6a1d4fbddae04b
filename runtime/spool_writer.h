// The spool's files on disk: the appending writer of a mailbox, and copies made piece by piece
// (schema/spool.h has paths and framing).
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "schema/spool.h"

namespace sweep::spool {

// Writer: appends whole lines to one file and syncs. Owns the file's tail: opening cuts a torn last line.
class Writer {
 public:
  static Expected<Writer> open(const fs::path& file, std::string allocation, i64 incarnation);
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  ~Writer();
  // Appends one line. If that fails, the partial line is cut off again. If it cannot be cut off, the next
  // append first writes a newline, so that the partial line damages no other. If the file has become shorter
  // than what was written, append fails: a reader that waits behind the old end would miss the line.
  Expected<i64> append(std::string_view kind, const nlohmann::json& body);  // its sequence number
  // The path no longer leads to this file, or the file was cut: no reader sees what is written.
  bool displaced() const;

 private:
  Writer() = default;
  int fd_ = -1;
  std::string path_, allocation_;
  i64 incarnation_ = 0, seq_ = 0;
  std::uint64_t end_ = 0;  // end of the last whole line
  bool torn_ = false;      // the file ends in a part of a line
};

// Appends to a copy the bytes that the original has at offset, and returns the copy's new size. Bytes that
// the copy has already are skipped, so a piece may come twice; a gap is an error. Only the owner may read a
// new file. Use kSynced where the pieces cannot be requested again: it syncs what came before, too.
enum class Copy { kSynced, kUnsynced };
Expected<std::uint64_t> append_copy(const fs::path& file, std::uint64_t offset, std::string_view bytes, Copy);

}  // namespace sweep::spool
