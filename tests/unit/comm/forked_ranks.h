// Runs a function as the ranks of a group, one forked process each. The parent computes nothing with
// LibTorch, so the children may.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench_kernels/comm/forked_ranks.h"

namespace sweep::testing {

class ScratchFolder {
 public:
  ScratchFolder() {
    char name[] = "/dev/shm/sweep_test_XXXXXX";
    if (mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp failed on /dev/shm");
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Throws in a child: the test's own check, without GoogleTest's state, which a fork does not share.
inline void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("requirement failed: " + what);
}

using RankBody = std::function<void(const comm::GroupOptions&)>;

// How long a rank waits for another: far longer than any wait of a test that passes, also where ranks share a core.
constexpr std::chrono::minutes kLongestWait(5);

// One exit status for each rank, as waitpid gives it; 0: the body returned.
inline std::vector<int> run_ranks(int world, const RankBody& body) {
  std::vector<int> statuses;
  const auto ends = comm::run_forked(world, kLongestWait, [&](const comm::GroupOptions& options) {
    body(options);
    return std::string();
  });
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    if (ends[rank].status != 0)
      std::fprintf(stderr, "rank %zu of %d: %s\n", rank, world, ends[rank].text.c_str());
    statuses.push_back(ends[rank].status);
  }
  return statuses;
}

}  // namespace sweep::testing
