#include "base/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace sweep {
namespace {

constexpr int kStreams = 4;  // 0, 1, 2 and the extra one

std::vector<char*> word_pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (auto& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

// All that the child needs, made before the fork: it may not allocate.
struct Prepared {
  const ChildProgram& wanted;
  const char* program;
  char* const* argv;
  char* const* environment;
  pid_t parent;
  int report;  // gets errno if the program cannot be executed
};

bool join_group(const Prepared& child) {
  switch (child.wanted.group) {
    case ChildProgram::Group::kOurs:
      return true;
    case ChildProgram::Group::kJoin:
      return ::setpgid(0, child.wanted.leader) == 0;
    case ChildProgram::Group::kNew:
      return ::setpgid(0, 0) == 0;
    case ChildProgram::Group::kSession:
      return ::setsid() >= 0;
  }
  return false;
}

// Reads the list of /proc, which names each descriptor by its digits. It runs in the child of a fork, so it allocates
// nothing.
bool close_on_exec_one_by_one(unsigned first) {
  const int list = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (list < 0) return false;
  alignas(dirent64) std::array<char, 4096> entries{};
  long got = 0;
  while ((got = ::syscall(SYS_getdents64, list, entries.data(), entries.size())) > 0)
    for (long at = 0; at < got;) {
      const auto* entry = static_cast<const dirent64*>(static_cast<const void*>(entries.data() + at));
      unsigned number = 0;
      for (const char* c = entry->d_name; *c >= '0' && *c <= '9'; ++c)
        number = 10 * number + static_cast<unsigned>(*c - '0');
      if (number >= first) ::fcntl(static_cast<int>(number), F_SETFD, FD_CLOEXEC);
      at += entry->d_reclen;
    }
  return got == 0;
}

// CLOSE_RANGE_CLOEXEC is in Linux 5.11.
bool close_on_exec_from(unsigned first) {
  return ::close_range(first, ~0U, CLOSE_RANGE_CLOEXEC) == 0 || close_on_exec_one_by_one(first);
}

// Every source is moved out of the way of the targets first, since one may be another's target.
bool place_streams(const ChildProgram& wanted, int& report) {
  std::array<int, kStreams> from{wanted.in, wanted.out, wanted.err, wanted.extra};
  report = ::fcntl(report, F_DUPFD_CLOEXEC, 2 * kStreams);
  if (report < 0) return false;
  for (int& fd : from) {
    if (fd == ChildProgram::kInherit) continue;
    const int source = fd == ChildProgram::kNothing ? ::open("/dev/null", O_RDWR | O_CLOEXEC) : fd;
    fd = ::fcntl(source, F_DUPFD_CLOEXEC, 2 * kStreams);
    if (fd < 0) return false;
  }
  for (int target = 0; target < kStreams; ++target)
    if (from[static_cast<std::size_t>(target)] != ChildProgram::kInherit &&
        ::dup2(from[static_cast<std::size_t>(target)], target) < 0)
      return false;
  const unsigned first = wanted.extra == ChildProgram::kInherit ? 3 : 4;
  return close_on_exec_from(first);
}

// Runs in the child, where only async-signal-safe calls are allowed.
[[noreturn]] void execute_prepared(const Prepared& child) {
  int report = child.report;
  reset_signals();
  if (child.wanted.dies_with_us) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != child.parent) ::_exit(127);  // it ended before prctl
  }
  const bool there = child.wanted.folder.empty() || ::chdir(child.wanted.folder.c_str()) == 0;
  if (there && join_group(child) && place_streams(child.wanted, report))
    ::execve(child.program, child.argv, child.environment);
  const int cause = errno;
  (void)!::write(report < 0 ? child.report : report, &cause, sizeof cause);
  ::_exit(127);
}

// The errno that the child wrote before it ended; 0: it has executed its program.
int read_report(int fd) {
  int cause = 0;
  ssize_t got = 0;
  do got = ::read(fd, &cause, sizeof cause);
  while (got < 0 && errno == EINTR);
  return got == sizeof cause ? cause : 0;
}

}  // namespace

Expected<pid_t> start_program(const ChildProgram& wanted) {
  auto argv = wanted.argv;
  const auto program = find_program(wanted.program.empty() ? argv.at(0) : wanted.program.string());
  if (!program) return fail(fmt::format("cannot start {}: there is no such program on PATH", argv[0]));
  auto environment = wanted.environment.value_or(std::vector<std::string>());
  const auto argv_pointers = word_pointers(argv), environment_pointers = word_pointers(environment);
  int report[2];
  const auto cannot = [&](int error) {
    return fail(error == ENOENT ? ErrorKind::kNotFound : ErrorKind::kFailed, program->string(),
                fmt::format("cannot start {}: {}", program->string(), std::strerror(error)));
  };
  if (::pipe2(report, O_CLOEXEC) != 0) return cannot(errno);
  const Prepared child{wanted,
                       program->c_str(),
                       argv_pointers.data(),
                       wanted.environment ? environment_pointers.data() : environ,
                       ::getpid(),
                       report[1]};
  pid_t pid = 0;
  int error = 0;
  {
    const SignalsHeld held;
    pid = ::fork();
    if (pid == 0) execute_prepared(child);
    error = pid < 0 ? errno : 0;
  }
  ::close(report[1]);
  if (pid > 0) error = read_report(report[0]);
  ::close(report[0]);
  if (error == 0) return pid;
  if (pid > 0) wait_for(pid);
  return cannot(error);
}

std::optional<std::filesystem::path> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const auto file = std::filesystem::path(folder.empty() ? "." : folder) / name;
    std::error_code ignored;
    if (::access(file.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(file, ignored)) return file;
  }
  return std::nullopt;
}

ProcessEnd end_of(int status) {
  if (WIFEXITED(status)) return {WEXITSTATUS(status), 0};
  return {-1, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

ProcessEnd wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return {};
  return end_of(status);
}

int open_pidfd(pid_t process) {
  return static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
}

SignalsHeld::SignalsHeld() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before_);
}

SignalsHeld::~SignalsHeld() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void reset_signals(int ignored) {
  for (int number = 1; number < NSIG; ++number) ::signal(number, number == ignored ? SIG_IGN : SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace sweep
