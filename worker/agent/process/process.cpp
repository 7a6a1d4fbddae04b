#include "worker/agent/process/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "base/fail.h"
#include "schema/codec.h"
#include "schema/spool.h"
#include "schema/version.h"

namespace sweep::agent {
namespace {

constexpr auto kForTheLast =
    std::chrono::seconds(10);  // an agent that is being killed holds the lock until it is gone
constexpr auto kLockLook = std::chrono::milliseconds(20);

tl::unexpected<Error> failed_to(const char* what) {
  return fail("cannot {}: {}", what, std::strerror(errno));
}

// Copies the child's line to standard output; the exit code.
int pass_on(int from) {
  std::string line;
  char byte = 0;
  while (line.empty() || line.back() != '\n') {
    const ssize_t n = ::read(from, &byte, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    line += byte;
  }
  if (line.empty())
    line = to_text(not_ready("the agent ended before it served; its agent.log says why")) + "\n";
  const bool written = ::write(STDOUT_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const auto told = from_text<AgentReady>(line);
  return written && told && told->ready ? 0 : 1;
}

}  // namespace

Expected<void> mark_self(const Options& options, const std::optional<Join>& join, char** argv) {
  const std::string token = attempt_token(options.key(), 0);
  if (const char* mark = std::getenv(kAttemptVariable); mark != nullptr && token == mark) return {};
  ::setenv(kAttemptVariable, token.c_str(), 1);
  if (join) {
    int ends[2];
    const std::string line = join_line(*join);
    if (::pipe(ends) != 0) return failed_to("make a pipe");
    if (::write(ends[1], line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      return failed_to("fill a pipe");
    ::close(ends[1]);
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
  }
  ::execv("/proc/self/exe", argv);
  return failed_to("execute this program again");
}

Expected<void> lock_spool(const Options& options) {
  const auto path = spool::agent_lock(options.spool, options.node);
  // A user who may open it could lock it and keep our agents from starting.
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return fail("{}: {}", path.string(), std::strerror(errno));
  const auto deadline = std::chrono::steady_clock::now() + kForTheLast;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return {};
    if (std::chrono::steady_clock::now() > deadline)
      return fail("{}: another agent serves this node of the allocation", path.string());
    std::this_thread::sleep_for(kLockLook);
  }
  return {};  // held by the open file, until the last process that shares it is gone
}

bool agent_lives(const std::filesystem::path& spool) {
  const int fd = ::open(spool::agent_lock(spool).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  const bool lives = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return lives;
}

Expected<int> detach(const Options& options) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed_to("make a pipe");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return failed_to("fork");
  if (child > 0) {
    ::close(ends[1]);
    std::_Exit(pass_on(ends[0]));
  }
  ::close(ends[0]);
  ::setsid();
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int log =
      ::open(spool::agent_log(options.spool).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (nothing < 0 || log < 0) return failed_to("open agent.log");
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::close(nothing);
  ::close(log);
  return ends[1];
}

AgentReady ready_line(const SandboxInfo& inside) {
  AgentReady out;
  out.ready = true, out.version = kVersion, out.pid = outside_pid(inside, ::getpid());
  return out;
}

AgentReady not_ready(std::string why) {
  AgentReady out;
  out.error = std::move(why);
  return out;
}

void tell_launcher(int fd, const AgentReady& line) {
  if (fd < 0) return;
  const std::string text = to_text(line) + "\n";
  (void)!::write(fd, text.data(), text.size());
  ::close(fd);
}

}  // namespace sweep::agent
