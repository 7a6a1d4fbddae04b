// Forked ranks: runs a function as the ranks of a group, one forked process each, over a rendezvous folder on
// memory that is removed afterwards. For checks and tests; trials are started by an agent. The children
// compute on one thread; they die with their parent.
//
// REQUIRES: the caller is single-threaded and has run no parallel region (LibTorch's threads do not survive a
// fork).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "bench_kernels/comm/group.h"

namespace sweep::comm {

struct RankEnd {
  int status = -1;         // waitpid's status; 0: the body returned
  bool lost_peer = false;  // it failed because another rank did
  std::string text;        // the result of the body, or the reason why it failed
};
using RankBody = std::function<std::string(const GroupOptions&)>;
// Throws std::runtime_error when no folder or process can be made.
std::vector<RankEnd> run_forked(int world, std::chrono::milliseconds timeout, const RankBody&);

}  // namespace sweep::comm
