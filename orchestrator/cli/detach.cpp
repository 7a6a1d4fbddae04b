#include "orchestrator/cli/detach.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <ostream>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/process.h"

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

Expected<pid_t> start_in_background(std::vector<std::string> words, const std::filesystem::path& log) {
  const Descriptor out(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (out.get() < 0) return file_error("cannot be opened", log);
  ChildProgram wanted{std::move(words)};
  wanted.program = "/proc/self/exe";
  wanted.out = wanted.err = out.get();
  wanted.group = ChildProgram::Group::kSession;
  return start_program(wanted);
}

std::optional<store::LeaseHolder> holder_of(const SweepSelector& db, const std::string& sweep) {
  const auto opened = open_sweep({db.db, sweep}, store::Mode::kReadOnly);
  if (!opened) return std::nullopt;
  const auto holder = opened->store->lease(opened->sweep.id);
  return holder ? *holder : std::nullopt;
}

}  // namespace

std::vector<std::string> detached_words(std::vector<std::string> words,
                                        const std::vector<std::string>& more) {
  const auto no_options = std::find(words.begin(), words.end(), "--");  // from there on no word is an option
  const auto kept = std::remove_if(words.begin(), no_options, [](const std::string& word) {
    return word == "--detach" || word.starts_with("--detach=");
  });
  const auto end_of_options = words.erase(kept, no_options);
  words.insert(end_of_options, more.begin(), more.end());
  return words;
}

int detach(Io& io, const SweepSelector& db, const std::string& sweep, const std::filesystem::path& log,
           const std::vector<std::string>& more) {
  const auto started = start_in_background(detached_words(own_words(), more), log);
  if (!started) return refuse(io, {"cannot start it in the background: " + started.error().message});
  const pid_t pid = *started;
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
