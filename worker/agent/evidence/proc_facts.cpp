// Reading /proc, with pids translated between namespaces by NSpid.
#include "worker/agent/evidence/proc_facts.h"

#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/files.h"

namespace sweep::agent {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostThreads = 16;

// Reads a file without the newline or NUL at its end.
std::string slurp(const std::string& path, std::size_t max_bytes = 1u << 14) {
  std::string out = files::read_proc(path, max_bytes);
  while (!out.empty() && (out.back() == '\n' || out.back() == '\0')) out.pop_back();
  return out;
}

struct Status {
  std::string name;
  char state = 'X';
  long parent = 0;  // number in this /proc
  std::vector<pid_t> pids;
};

Status read_status(const std::string& entry) {
  Status out;
  std::istringstream lines(slurp("/proc/" + entry + "/status"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "Name:") words >> out.name;
    if (key == "State:") words >> out.state;
    if (key == "PPid:") words >> out.parent;
    if (key == "NSpid:")
      for (pid_t pid = 0; words >> pid;) out.pids.push_back(pid);
  }
  return out;
}

template <class F>
void for_each_process(F&& f) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator("/proc", ec)) {
    const std::string name = entry.path().filename();
    if (!name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) && !f(name)) return;
  }
}

std::size_t own_depth() {
  static const std::size_t depth = read_status("self").pids.size();
  return depth;
}

}  // namespace

std::string entry_of(pid_t pid) {
  if (own_depth() <= 1) return std::to_string(pid);
  std::string found;
  for_each_process([&](const std::string& name) {
    const auto pids = read_status(name).pids;
    if (pids.size() >= own_depth() && pids[own_depth() - 1] == pid) found = name;
    return found.empty();
  });
  return found;
}

std::vector<ChildProcess> children() {
  std::error_code ec;
  const long self = std::atol(fs::read_symlink("/proc/self", ec).c_str());
  std::vector<ChildProcess> out;
  for_each_process([&](const std::string& name) {
    const Status status = read_status(name);
    if (status.parent == self && status.state != 'Z' && status.state != 'X' &&
        status.pids.size() >= own_depth())
      out.push_back({status.pids[own_depth() - 1], status.state, status.name});
    return true;
  });
  return out;
}

std::optional<ProcessPlace> where_it_is(pid_t pid) {
  const std::string entry = entry_of(pid);
  if (entry.empty()) return std::nullopt;
  const auto read = [&](const char* file) { return slurp("/proc/" + entry + "/" + file, 4096); };
  ProcessPlace out{
      std::string(1, read_status(entry).state), read("wchan"), read("syscall"), read("stack"), {}};
  std::error_code ec;
  for (const auto& thread : fs::directory_iterator("/proc/" + entry + "/task", ec)) {
    if (out.threads.size() == kMostThreads) break;
    const std::string at = "/proc/" + entry + "/task/" + thread.path().filename().string();
    out.threads.push_back({slurp(at + "/comm", 64), slurp(at + "/wchan", 128)});
  }
  return out;
}

}  // namespace sweep::agent
