#include "bench_kernels/comm/forked_ranks.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace sweep::comm {
namespace {

constexpr int kFailed = 1, kLostPeer = 2;  // exit codes of a rank

class RendezvousFolder {
 public:
  RendezvousFolder() {
    char name[] = "/dev/shm/sweep_ranks_XXXXXX";
    if (mkdtemp(name) == nullptr)
      throw std::runtime_error(std::string("no folder can be made in /dev/shm: ") + std::strerror(errno));
    path_ = name;
  }
  ~RendezvousFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  RendezvousFolder(const RendezvousFolder&) = delete;
  RendezvousFolder& operator=(const RendezvousFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string answer_of(int rank) const { return path_ + "/answer_" + std::to_string(rank); }

 private:
  std::string path_;
};

void write_answer(const std::string& file, const std::string& text) {
  std::ofstream(file, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

[[noreturn]] void be_rank(const GroupOptions& options, const std::string& answer, const RankBody& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  at::set_num_threads(1);
  int code = 0;
  try {
    write_answer(answer, body(options));
  } catch (const c10::DistError& error) {
    write_answer(answer, error.what_without_backtrace());
    code = kLostPeer;
  } catch (const c10::Error& error) {
    write_answer(answer, error.what_without_backtrace());
    code = kFailed;
  } catch (const std::exception& error) {
    write_answer(answer, error.what());
    code = kFailed;
  }
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace

std::vector<RankEnd> run_forked(int world, std::chrono::milliseconds timeout, const RankBody& body) {
  const RendezvousFolder folder;
  std::vector<pid_t> children;
  GroupOptions options;
  options.directory = folder.path(), options.world = world, options.timeout = timeout;
  for (int rank = 0; rank < world; ++rank) {
    options.rank = rank;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) be_rank(options, folder.answer_of(rank), body);
    if (child < 0) {
      for (const pid_t started : children) kill(started, SIGKILL);
      for (const pid_t started : children) waitpid(started, nullptr, 0);
      throw std::runtime_error(std::string("no process can be made for a rank: ") + std::strerror(errno));
    }
    children.push_back(child);
  }
  std::vector<RankEnd> ends;
  for (int rank = 0; rank < world; ++rank) {
    RankEnd end;
    waitpid(children[static_cast<std::size_t>(rank)], &end.status, 0);
    end.lost_peer = WIFEXITED(end.status) && WEXITSTATUS(end.status) == kLostPeer;
    std::ifstream in(folder.answer_of(rank), std::ios::binary);
    end.text.assign(std::istreambuf_iterator<char>(in), {});
    ends.push_back(std::move(end));
  }
  return ends;
}

}  // namespace sweep::comm
