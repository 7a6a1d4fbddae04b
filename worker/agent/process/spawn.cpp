// fork, exec and what must be set in between.
#include "worker/agent/process/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/attempt_token.h"

namespace sweep::agent {

namespace {

constexpr int kChannel = 3;

// Every signal is held back around a fork: the event loop's handlers write to a pipe that a child still
// shares, so that a signal for the child would be taken for one of the agent's.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsHeld() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

// In the child: back to the defaults, then nothing is held back any more.
void reset_signals(int ignored = 0) {
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD, SIGPIPE, SIGHUP})
    ::signal(signal, signal == ignored ? SIG_IGN : SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

std::vector<std::string> environment(const std::string& token) {
  const std::string prefix = std::string(kAttemptVariable) + "=";
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::strncmp(*entry, prefix.c_str(), prefix.size()) != 0) out.emplace_back(*entry);
  if (!token.empty()) out.push_back(prefix + token);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (auto& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

// In the child; only async-signal-safe calls.
[[noreturn]] void execute(const Spawn& wanted, pid_t agent, char* const* argv, char* const* envp,
                          int report) {
  reset_signals();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != agent) ::_exit(127);
  if (wanted.group >= 0) ::setpgid(0, wanted.group);
  if (!wanted.log.empty()) {
    const int log = ::open(wanted.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log >= 0) {
      ::dup2(log, STDOUT_FILENO);
      ::dup2(log, STDERR_FILENO);
    }
  }
  if (wanted.input >= 0) ::dup2(wanted.input, STDIN_FILENO);
  const int high_report = ::fcntl(report, F_DUPFD_CLOEXEC, 10);
  if (wanted.channel >= 0 && wanted.channel != kChannel) ::dup2(wanted.channel, kChannel);
  if (wanted.channel == kChannel) ::fcntl(kChannel, F_SETFD, 0);
  ::close_range(wanted.channel >= 0 ? kChannel + 1 : kChannel, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execve(argv[0], argv, envp);
  const int cause = errno;
  (void)!::write(high_report, &cause, sizeof cause);
  ::_exit(127);
}

}  // namespace

Expected<pid_t> spawn(const Spawn& wanted) {
  std::vector<std::string> argv = wanted.argv, env = environment(wanted.token);
  const auto argv_pointers = pointers(argv), env_pointers = pointers(env);
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return fail(fmt::format("no pipe: {}", std::strerror(errno)));
  const pid_t agent = ::getpid();
  const SignalsHeld held;
  const pid_t pid = ::fork();
  if (pid == 0) execute(wanted, agent, argv_pointers.data(), env_pointers.data(), report[1]);
  ::close(report[1]);
  int cause = 0;
  ssize_t got = 0;
  do got = pid < 0 ? 0 : ::read(report[0], &cause, sizeof cause);
  while (got < 0 && errno == EINTR);
  ::close(report[0]);
  if (pid < 0) return fail(fmt::format("cannot fork: {}", std::strerror(errno)));
  if (got == sizeof cause) {
    ::waitpid(pid, nullptr, 0);
    return fail(fmt::format("cannot execute {}: {}", argv[0], std::strerror(cause)));
  }
  return pid;
}

Expected<pid_t> spawn_anchor() {
  const pid_t agent = ::getpid();
  const SignalsHeld held;
  const pid_t pid = ::fork();
  if (pid < 0) return fail(fmt::format("cannot fork: {}", std::strerror(errno)));
  if (pid == 0) {
    reset_signals(SIGTERM);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setpgid(0, 0);
    ::close_range(0, ~0U, 0);
    if (::getppid() != agent) ::_exit(0);
    while (true) ::pause();
  }
  ::setpgid(pid, pid);  // parent and child both set it; the first one wins
  return pid;
}

int pidfd_open(pid_t pid) {
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
}

}  // namespace sweep::agent
