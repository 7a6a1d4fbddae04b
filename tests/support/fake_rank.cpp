// fake_rank: a torch-free rank program with both start forms of schema/rank_launch.h.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "fake_trial.h"
#include "runtime/attempt_token.h"
#include "runtime/rank_process.h"
#include "schema/codec.h"
#include "schema/spool.h"

namespace {

using namespace sweep;

constexpr int kChannel = 3;

// Group, log and the death signal of the agent; everything between the last fork and the trial.
void become_fake_rank(const RankLaunch& launch) {
  const auto log = spool::rank_log(launch.attempt_dir, launch.rank);
  const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd >= 0) {
    ::dup2(fd, STDOUT_FILENO);
    ::dup2(fd, STDERR_FILENO);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launch.agent_pid) ::_exit(9);  // the agent died before the signal was set
  if (const auto kept = keep_to_place(launch); !kept) {
    std::fprintf(stderr, "fake_rank: %s\n", kept.error().message.c_str());
    ::_exit(9);
  }
}

int run_exec(const std::string& text) {
  const auto launch = from_text<RankLaunch>(text);
  if (!launch) {
    std::fprintf(stderr, "fake_rank: %s\n", launch.error().message.c_str());
    return 2;
  }
  ::setpgid(0, static_cast<pid_t>(launch->pgid));
  become_fake_rank(*launch);
  return fake::run_trial(*launch);
}

// Forks twice; the rank's pid comes back through a pipe once its group is set.
nlohmann::json fork_rank(const RankLaunch& launch) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {{"error", "no pipe"}};
  const pid_t middle = ::fork();
  if (middle == 0) {
    const pid_t parent = ::getpid();
    if (::fork() == 0) {
      mark_this_process(spool::attempt_of(launch.attempt_dir));
      const int group = ::setpgid(0, static_cast<pid_t>(launch.pgid));
      const pid_t self = group == 0 ? ::getpid() : -1;
      (void)!::write(ends[1], &self, sizeof self);
      ::close(ends[0]);
      ::close(ends[1]);
      ::close(kChannel);
      while (::getppid() == parent) ::usleep(100);  // it is about to end
      become_fake_rank(launch);
      std::exit(fake::run_trial(launch));
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  pid_t pid = -1;
  const ssize_t got = ::read(ends[0], &pid, sizeof pid);
  ::close(ends[0]);
  ::waitpid(middle, nullptr, 0);
  if (got != sizeof pid || pid < 0) return {{"error", "the fork failed"}};
  return {{"pid", pid}};
}

int run_zygote() {
  const auto send = [](const nlohmann::json& message) {
    const std::string bytes = message.dump();
    return ::send(kChannel, bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0;
  };
  if (!send({{"ready", true}})) return 1;
  std::string buffer(1 << 16, '\0');
  while (true) {
    const ssize_t got = ::recv(kChannel, buffer.data(), buffer.size(), 0);
    if (got <= 0) return 0;
    const auto launch = from_text<RankLaunch>(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
    const auto answer = launch ? fork_rank(*launch) : nlohmann::json{{"error", launch.error().message}};
    if (!send(answer)) return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "run") == 0 && std::strcmp(argv[2], "--launch") == 0)
    return run_exec(argv[3]);
  if (argc == 2 && std::strcmp(argv[1], "zygote") == 0) return run_zygote();
  std::fprintf(stderr, "usage: fake_rank run --launch JSON | fake_rank zygote\n");
  return 2;
}
