// RankLog: keeps one rank's log file within its limit while the rank appends to it, and reads its end.
//
// The rank owns the file's contents; the agent only looks at its size. Past the limit the middle is given
// back to the disk (a hole between the first and the last half of the limit; the rank's appends are not
// disturbed and nothing at either end is lost), and when the rank has ended the file is rewritten as head,
// one line that says how much was cut, tail. On a filesystem without holes the file is cut back to its head
// instead, the tail carried over: bytes written in that very moment may be lost.
#pragma once
#include <filesystem>
#include <string>

#include "schema/trial.h"

namespace sweep::agent {

class RankLog {
 public:
  RankLog(std::filesystem::path file, i64 limit_bytes);
  void look();     // while the rank runs; cheap when the file is small
  void compact();  // REQUIRES: the rank has ended.
  std::string tail(
      std::size_t max_bytes = 4096) const;  // valid UTF-8, from the start of a line where possible

 private:
  void cut_back(int fd, i64 size);
  std::filesystem::path file_;
  i64 half_;       // bytes kept at either end
  i64 holed_ = 0;  // bytes of the hole up to now
  bool holes_ = true;
};

}  // namespace sweep::agent
