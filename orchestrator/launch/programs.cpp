#include "orchestrator/launch/programs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "base/process.h"

namespace sweep::launch {
namespace {

// A child whose standard output is read. Its destructor kills and waits for what still runs.
class CapturedChild {
 public:
  Expected<void> start(const std::filesystem::path& program, const std::vector<std::string>& arguments) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      return fail(fmt::format("cannot start {}: no pipe: {}", program.string(), std::strerror(errno)));
    ChildProgram wanted{{program.string()}};
    wanted.program = program;
    wanted.argv.insert(wanted.argv.end(), arguments.begin(), arguments.end());
    wanted.out = ends[1];
    const auto started = start_program(wanted);
    ::close(ends[1]);
    out_ = ends[0];
    if (started) pid_ = *started;
    return started.map([](pid_t) {});
  }
  CapturedChild() = default;
  CapturedChild(const CapturedChild&) = delete;
  CapturedChild& operator=(const CapturedChild&) = delete;
  ~CapturedChild() {
    if (out_ >= 0) ::close(out_);
    if (!pid_) return;
    ::kill(*pid_, SIGKILL);
    wait_for(*pid_);
  }
  int out() const { return out_; }
  ProcessEnd wait() { return wait_for(*std::exchange(pid_, std::nullopt)); }

 private:
  std::optional<pid_t> pid_;
  int out_ = -1;
};

}  // namespace

namespace fs = std::filesystem;

fs::path companion(const std::string& name) {
  std::error_code ec;
  const auto beside = fs::read_symlink("/proc/self/exe", ec).parent_path() / name;
  if (fs::exists(beside, ec)) return beside;
  const auto found = find_program(name);
  return found ? fs::absolute(*found, ec) : beside;
}

Expected<void> check_programs(const Programs& programs) {
  for (const auto& program : {programs.agent, programs.rank})
    if (!program.empty() && ::access(program.c_str(), X_OK) != 0)
      return fail(
          fmt::format("{} is not there or cannot be executed; build it or name another", program.string()));
  return {};
}

Expected<std::string> capture(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                              double timeout_s, std::size_t max_bytes) {
  CapturedChild child;
  SWEEP_TRY(child.start(program, arguments));
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
  const ProcessEnd end = child.wait();
  if (end.code == 0) return text;
  return fail(end.signal != 0 ? fmt::format("{} was ended by signal {}", program.string(), end.signal)
                              : fmt::format("{} ended with code {}", program.string(), end.code));
}

}  // namespace sweep::launch
