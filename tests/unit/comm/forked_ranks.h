// Runs a function as the ranks of a group: one forked process each, over a rendezvous folder on memory that is removed
// afterwards. The parent computes nothing with LibTorch, so the children may.
#pragma once
#include <ATen/Parallel.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench_kernels/comm/group.h"

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

// One exit status for each rank, as waitpid gives it; 0: the body returned.
inline std::vector<int> run_ranks(int world, const RankBody& body) {
  const ScratchFolder folder;
  std::vector<pid_t> children;
  for (int rank = 0; rank < world; ++rank) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      int code = 0;
      try {
        at::set_num_threads(1);
        comm::GroupOptions options;
        options.directory = folder.path();
        options.rank = rank;
        options.world = world;
        options.timeout = std::chrono::seconds(60);
        body(options);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d of %d: %s\n", rank, world, error.what());
        code = 1;
      }
      std::fflush(nullptr);
      _exit(code);
    }
    children.push_back(child);
  }
  std::vector<int> statuses;
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    statuses.push_back(status);
  }
  return statuses;
}

}  // namespace sweep::testing
