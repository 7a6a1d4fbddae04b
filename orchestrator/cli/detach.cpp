#include "orchestrator/cli/detach.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <ostream>
#include <thread>
#include <vector>

namespace sweep::cli {
namespace {

std::vector<std::string> own_words() {
  std::vector<std::string> words;
  const int fd = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  std::string bytes;
  char buffer[4096];
  for (ssize_t n = 0; fd >= 0 && (n = ::read(fd, buffer, sizeof buffer)) > 0;)
    bytes.append(buffer, static_cast<std::size_t>(n));
  if (fd >= 0) ::close(fd);
  for (std::size_t at = 0; at < bytes.size();) {
    words.emplace_back(bytes.c_str() + at);
    at += words.back().size() + 1;
  }
  return words;
}

int spawn_session(pid_t& pid, std::vector<std::string> words, const std::filesystem::path& log) {
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  ::posix_spawn_file_actions_adddup2(&files, 1, 2);
  ::posix_spawn_file_actions_addclosefrom_np(&files, 3);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  const int error = ::posix_spawn(&pid, "/proc/self/exe", &files, &attributes, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  return error;
}

std::optional<store::LeaseHolder> holder_of(const SweepSelector& db, const std::string& sweep) {
  const auto opened = open_sweep({db.db, sweep}, store::Mode::kReadOnly);
  if (!opened) return std::nullopt;
  const auto holder = opened->store->lease(opened->sweep.id);
  return holder ? *holder : std::nullopt;
}

}  // namespace

int detach(Io& io, const std::string& flag, const SweepSelector& db, const std::string& sweep,
           const std::filesystem::path& log, const std::vector<std::string>& more) {
  auto words = own_words();
  std::erase(words, flag);
  words.insert(words.end(), more.begin(), more.end());
  pid_t pid = 0;
  if (const int error = spawn_session(pid, std::move(words), log); error != 0)
    return refuse(io, {fmt::format("cannot start it in the background: {}", std::strerror(error))});
  for (int status = 0;;) {
    if (::waitpid(pid, &status, WNOHANG) == pid) {
      io.err << fmt::format("it has ended already; its log is {}\n", log.string());
      return WIFEXITED(status) ? WEXITSTATUS(status) : kUnanswered;
    }
    if (const auto holder = holder_of(db, sweep); holder && holder->pid == pid) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  io.err << fmt::format(
      "sweep {} runs in the background as process {}; its log goes to {}\n"
      "`sweep status`, `sweep stop` and `sweep run` or `resume` (which watch it) work from any shell\n",
      sweep, pid, log.string());
  return kAnswered;
}

}  // namespace sweep::cli
