// The outer process and the way into the inner one.
#include "worker/agent/process/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "base/process.h"
#include "runtime/attempt_token.h"

namespace sweep::agent {

namespace {

using Clock = std::chrono::steady_clock;
// Time for the inner one to end its ranks and to say so.
constexpr auto kAfterParent = std::chrono::seconds(5);
constexpr int kOuterLookMs = 200;
constexpr auto kAfterClose = std::chrono::seconds(3);  // a rank in uninterruptible sleep holds the namespace

bool write_text(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool whole = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return whole;
}

// A PID namespace for the children of this process, by a user namespace of our own where we are not root.
bool unshare_pids() {
  if (::unshare(CLONE_NEWPID) == 0) return true;
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return false;
  return write_text("/proc/self/setgroups", "deny") &&
         write_text("/proc/self/uid_map", fmt::format("{0} {0} 1", uid)) &&
         write_text("/proc/self/gid_map", fmt::format("{0} {0} 1", gid));
}

// A user namespace whose maps fail cannot be left again: try in a child first.
bool may_unshare_pids() {
  const pid_t probe = ::fork();
  if (probe == 0) {
    if (!unshare_pids()) ::_exit(1);
    const pid_t init = ::fork();  // the first child is the one that can be refused
    if (init == 0) ::_exit(0);
    int status = 0;
    ::_exit(init > 0 && ::waitpid(init, &status, 0) == init && status == 0 ? 0 : 1);
  }
  int status = 0;
  return probe > 0 && ::waitpid(probe, &status, 0) == probe && status == 0;
}

bool readable(int fd) {
  pollfd one{fd, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

// The signs of life of the inner process. Time in which this process itself did not run counts as one look.
class BeatWatch {
 public:
  explicit BeatWatch(int pipe) : pipe_(pipe) {}

  // False: the inner one has closed its end, so it is exiting.
  bool read() {
    char beats[256];
    ssize_t got = 0;
    while ((got = ::read(pipe_, beats, sizeof beats)) > 0) silent_s_ = 0, beaten_ = true;
    const auto now = Clock::now();
    const double passed = std::chrono::duration<double>(now - std::exchange(looked_, now)).count();
    if (beaten_) silent_s_ += std::min(passed, 2 * kOuterLookMs / 1e3);
    return got != 0;
  }
  double silent_s() const { return silent_s_; }
  int pipe() const { return pipe_; }

 private:
  const int pipe_;
  bool beaten_ = false;
  double silent_s_ = 0;
  Clock::time_point looked_ = Clock::now();
};

class Outer {
 public:
  Outer(const Options& options, pid_t inner, int parent_pidfd, int inner_alive)
      : options_(options),
        inner_(inner),
        inner_pidfd_(open_pidfd(inner)),
        parent_pidfd_(parent_pidfd),
        beats_(inner_alive) {
    sigset_t forwarded;
    sigemptyset(&forwarded);
    sigaddset(&forwarded, SIGTERM);
    sigaddset(&forwarded, SIGINT);
    signals_ = ::signalfd(-1, &forwarded, SFD_CLOEXEC | SFD_NONBLOCK);
  }

  int watch() {
    while (true) {
      pollfd watched[] = {{inner_pidfd_, POLLIN, 0},
                          {signals_, POLLIN, 0},
                          {parent_gone_ ? -1 : parent_pidfd_, POLLIN, 0},
                          {closing_ ? -1 : beats_.pipe(), 0, 0}};  // its end; beats are read at each look
      ::poll(watched, 4, kOuterLookMs);
      int status = 0;
      for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;)  // others: orphans we adopted
        if (ended == inner_) return after(status);
      forward_signals();
      if (!parent_gone_ && options_.parent_pid > 0 && ::getppid() != options_.parent_pid) parent_is_gone();
      watch_beats();
      if (deadline_ && Clock::now() > *deadline_) {
        if (killed_) return after(SIGKILL);
        ::kill(inner_, SIGKILL);
        killed_ = true;
        deadline_ = Clock::now() + kAfterClose;
      }
    }
  }

 private:
  void set_deadline(Clock::duration from_now) {
    const auto when = Clock::now() + from_now;
    if (!deadline_ || when < *deadline_) deadline_ = when;
  }
  // An inner process that stands still keeps its ranks running, which the other agents have given up: it is
  // ended for it.
  void watch_beats() {
    if (closing_) return;
    if (!beats_.read()) {
      closing_ = true;
      set_deadline(kAfterClose);
    } else if (beats_.silent_s() > options_.stall_limit_s()) {
      spdlog::error("the agent made no progress for {:.0f} s; terminating it", beats_.silent_s());
      closing_ = true;
      set_deadline(Clock::duration::zero());
    }
  }
  void parent_is_gone() {
    parent_gone_ = true;
    set_deadline(kAfterParent);
  }
  void forward_signals() const {
    signalfd_siginfo info;
    while (::read(signals_, &info, sizeof info) == sizeof info)
      ::kill(inner_, static_cast<int>(info.ssi_signo));
  }
  // Whatever the inner one left: processes without a namespace to die with, rendezvous folders.
  int after(int status) const {
    const std::string key = options_.key();
    for (int i = 0; i < 200; ++i) {
      int left = 0;
      for (const auto& process : marked_processes(key))
        if (process.pid != ::getppid() && ++left > 0) ::kill(process.pid, SIGKILL);
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      if (left == 0) break;
      ::usleep(10'000);
    }
    std::error_code ec;
    std::filesystem::remove_all(rendezvous_root(key, options_.incarnation), ec);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  const Options& options_;
  pid_t inner_;
  int inner_pidfd_, parent_pidfd_, signals_ = -1;
  BeatWatch beats_;
  bool parent_gone_ = false, closing_ = false, killed_ = false;
  std::optional<Clock::time_point> deadline_;
};

Expected<void> die_with_outer(const SandboxInfo& inside) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || readable(inside.outer_pidfd))
    return fail("the outer agent process is gone already");
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    return fail("this kernel has no child subreaper: {}", std::strerror(errno));
  return {};
}

bool mount_private_proc() {
  return ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0 &&
         ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0;
}

void block_signals() {
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&blocked, signal);
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
}

}  // namespace

Expected<SandboxInfo> enter_sandbox(const Options& options) {
  block_signals();
  SandboxInfo inside;
  if (options.parent_pid > 0) {
    inside.parent_pidfd = open_pidfd(options.parent_pid);
    if (::getppid() != options.parent_pid)
      return fail("process {} is not the parent of this agent, or it is gone", options.parent_pid);
  }
  inside.outer_pidfd = open_pidfd(::getpid());
  if (inside.outer_pidfd < 0)
    return fail("pidfd_open failed: {}; Linux 5.3 or newer is needed", std::strerror(errno));
  inside.outer_proc = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  inside.pid_namespace = options.pid_namespace && may_unshare_pids() && unshare_pids();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  int alive[2];
  if (::pipe2(alive, O_CLOEXEC | O_NONBLOCK) != 0) return fail("no pipe: {}", std::strerror(errno));
  std::fflush(nullptr);
  const pid_t inner = ::fork();
  if (inner < 0) return fail("cannot fork the agent: {}", std::strerror(errno));
  if (inner > 0) {
    ::close(alive[1]);
    std::_Exit(Outer(options, inner, inside.parent_pidfd, alive[0]).watch());
  }
  ::close(alive[0]);
  inside.beat = alive[1];  // open as long as this process lives
  SWEEP_TRY(die_with_outer(inside));
  inside.private_proc = inside.pid_namespace && mount_private_proc();
  return inside;
}

void beat(const SandboxInfo& inside) {
  (void)!::write(inside.beat, "", 1);
}

i64 outside_pid(const SandboxInfo& inside, pid_t pid) {
  if (!inside.pid_namespace) return pid;
  const int target = open_pidfd(pid);
  if (target < 0) return pid;
  i64 found = pid;
  const int info =
      ::openat(inside.outer_proc, fmt::format("self/fdinfo/{}", target).c_str(), O_RDONLY | O_CLOEXEC);
  if (info >= 0) {
    char text[512] = {};
    if (::read(info, text, sizeof text - 1) > 0)
      if (const char* at = std::strstr(text, "Pid:")) found = std::atoll(at + 4);
    ::close(info);
  }
  ::close(target);
  return found > 0 ? found : pid;
}

}  // namespace sweep::agent
