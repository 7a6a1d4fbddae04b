#include "orchestrator/launch/capture.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

namespace sweep::launch {
namespace {

// A child whose standard output is read; its destructor kills and waits for what still runs.
class Child {
 public:
  Child(const std::filesystem::path& program, const std::vector<std::string>& arguments) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      error_ = errno;
      return;
    }
    std::vector<char*> argv{const_cast<char*>(program.c_str())};
    for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    error_ = ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    out_ = ends[0];
  }
  ~Child() {
    if (out_ >= 0) ::close(out_);
    if (error_ == 0 && !waited_) {
      ::kill(pid_, SIGKILL);
      wait();
    }
  }
  int error() const { return error_; }
  int out() const { return out_; }
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    waited_ = true;
    return status;
  }

 private:
  pid_t pid_ = 0;
  int out_ = -1, error_ = 0;
  bool waited_ = false;
};

}  // namespace

Expected<std::string> capture(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                              double timeout_s, std::size_t max_bytes) {
  Child child(program, arguments);
  if (child.error() != 0)
    return fail(fmt::format("{} cannot be started: {}", program.string(), std::strerror(child.error())));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  std::string text;
  char buffer[4096];
  for (;;) {
    const auto left =
        std::chrono::duration<double, std::milli>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) return fail(fmt::format("{} did not answer within {} s", program.string(), timeout_s));
    pollfd ready{child.out(), POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(left) + 1) <= 0) continue;
    const ssize_t n = ::read(child.out(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > max_bytes)
      return fail(fmt::format("{} says more than {} bytes", program.string(), max_bytes));
  }
  const int status = child.wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  return fail(WIFSIGNALED(status)
                  ? fmt::format("{} was ended by signal {}", program.string(), WTERMSIG(status))
                  : fmt::format("{} ended with code {}", program.string(), WEXITSTATUS(status)));
}

}  // namespace sweep::launch
