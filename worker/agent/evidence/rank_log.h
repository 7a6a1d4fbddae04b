// RankLog: keeps one rank's log file within its limit while the rank appends to it, and reads its end.
//
// The rank writes the file; the agent only reads its size. Past the limit the agent punches a hole between
// the first and the last half of the limit. Appends of the rank are not disturbed, and nothing at either end
// is lost. When the rank has ended, the file is rewritten: head, one line with how much was cut, tail. On a
// filesystem without holes the file is cut back to its head and the tail is written behind it; bytes that the
// rank writes at that moment may be lost.
#pragma once
#include <filesystem>
#include <string>

#include "schema/trial.h"

namespace sweep::agent {

class RankLog {
 public:
  RankLog(std::filesystem::path file, i64 limit_bytes);
  // While the rank runs; cheap when the file is small.
  void look();
  // REQUIRES: the rank has ended.
  void compact();
  // Valid UTF-8, from the start of a line where possible.
  std::string tail(std::size_t max_bytes = 4096) const;

 private:
  void cut_back(int fd, i64 size);
  std::filesystem::path file_;
  // Bytes kept at either end.
  i64 half_;
  // Bytes of the hole so far.
  i64 holed_ = 0;
  bool holes_ = true;
};

}  // namespace sweep::agent
