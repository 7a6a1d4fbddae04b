#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "runtime/attempt_token.h"
#include "runtime/rank_process.h"
#include "schema/codec.h"
#include "schema/spool.h"
#include "worker/rank/run_rank.h"

namespace sweep::rank {
namespace {

constexpr std::size_t kLongestRequest = 64 << 10;
constexpr int kProtocolVersion = 1;

bool send_message(int channel, const ZygoteAnswer& message) {
  const std::string bytes = to_text(message);
  ssize_t sent = -1;
  do sent = send(channel, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

struct Pipe {
  int read_end = -1, write_end = -1;
  bool make() {
    int ends[2];
    if (pipe(ends) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return true;
  }
};

// The attempt's number, from its folder's name (spool.h); 0 for a folder made by hand.
i64 attempt_of(const RankLaunch& launch) {
  return std::strtoll(std::filesystem::path(launch.attempt_dir).filename().c_str(), nullptr, 10);
}

// Runs in the rank, after the last fork. Reports its pid, or why not, and becomes the rank.
[[noreturn]] void become_rank(const RankLaunch& launch, const Pipe& report, const Pipe& parent_lives) {
  mark_this_process(attempt_of(launch));
  close(parent_lives.write_end);
  char nothing = 0;
  while (read(parent_lives.read_end, &nothing, 1) < 0 && errno == EINTR) {
  }  // ends when the process in between has ended, so that PDEATHSIG is not about it
  close(parent_lives.read_end);
  set_process_name(launch.rank);
  mark_this_process(spool::attempt_of(launch.attempt_dir));
  auto ready = join_process_group(launch.pgid)
                   .and_then([&] { return follow_agent(launch.agent_pid); })
                   .and_then([&] { return redirect_output(launch); })
                   .and_then([&] { return keep_to_place(launch); });
  const std::string bytes =
      to_text(ready ? ZygoteAnswer{.pid = getpid()} : ZygoteAnswer{.error = ready.error().message});
  const bool told = write(report.write_end, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  close(report.write_end);
  if (!ready || !told) _exit(1);
  const int code = run_rank(launch);
  std::fflush(nullptr);
  _exit(code);  // no destructors of the libraries: they were the zygote's, and cost time
}

ZygoteAnswer failure(const std::string& what) {
  return {.error = what + ": " + std::strerror(errno)};
}

ZygoteAnswer fork_rank(int channel, const RankLaunch& launch) {
  Pipe report, parent_lives;
  if (!report.make() || !parent_lives.make()) return failure("the zygote cannot make a pipe");
  std::fflush(nullptr);
  const pid_t between = fork();
  if (between == 0) {
    close(channel);
    close(report.read_end);
    const pid_t rank = fork();
    if (rank == 0) become_rank(launch, report, parent_lives);
    _exit(rank > 0 ? 0 : 1);
  }
  close(report.write_end);
  close(parent_lives.read_end);
  close(parent_lives.write_end);
  ZygoteAnswer answer = failure("the zygote cannot fork");
  if (between > 0) {
    int status = 0;
    while (waitpid(between, &status, 0) < 0 && errno == EINTR) {
    }
    std::array<char, 4096> buffer{};
    std::string text;
    for (ssize_t n = 0; (n = read(report.read_end, buffer.data(), buffer.size())) != 0;) {
      if (n > 0) text.append(buffer.data(), static_cast<std::size_t>(n));
      if (n < 0 && errno != EINTR) break;
    }
    answer =
        from_text<ZygoteAnswer>(text).value_or(ZygoteAnswer{.error = "the rank died before it said its pid"});
  }
  close(report.read_end);
  return answer;
}

ZygoteAnswer answer_to(int channel, std::string_view request) {
  const auto launch = from_text<RankLaunch>(request);
  if (!launch) return {.error = "the request is no RankLaunch: " + launch.error().message};
  return fork_rank(channel, *launch);
}

}  // namespace

int serve_zygote(int channel) {
  prctl(PR_SET_NAME, "sweep-zygote");
  if (!send_message(channel, {.ready = true, .version = kProtocolVersion})) {
    std::fprintf(stderr, "sweep-rank zygote: file descriptor %d is not a socket pair made by an agent: %s\n",
                 channel, std::strerror(errno));
    return 2;
  }
  std::string request(kLongestRequest, '\0');
  while (true) {
    const ssize_t n = recv(channel, request.data(), request.size(), 0);
    if (n == 0) return 0;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return 1;
    if (!send_message(channel, answer_to(channel, {request.data(), static_cast<std::size_t>(n)}))) return 1;
  }
}

}  // namespace sweep::rank
