// Counters and kernel messages of OOM kills.
#include "worker/agent/evidence/oom_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace sweep::agent {

namespace fs = std::filesystem;

namespace {

// "<key> <n>" anywhere in the file.
i64 counter(const fs::path& file) {
  std::ifstream in(file);
  std::string key;
  i64 value = 0;
  while (in >> key >> value)
    if (key == "oom_kill") return value;
  return 0;
}

// The nearest existing file on the way up from the cgroup: inside a container its own path may not be
// visible.
void add_nearest(std::vector<fs::path>& out, const fs::path& root, fs::path group, const char* file) {
  std::error_code ec;
  for (group = group.relative_path();; group = group.parent_path()) {
    const fs::path candidate = root / group / file;
    if (fs::exists(candidate, ec)) return out.push_back(candidate);
    if (group.empty()) return;
  }
}

}  // namespace

std::vector<fs::path> oom_counters(const std::string& proc_self_cgroup, const fs::path& mounted_at) {
  std::vector<fs::path> out;
  std::istringstream lines(proc_self_cgroup);
  for (std::string line; std::getline(lines, line);) {  // hierarchy:controllers:path
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path group = line.substr(second + 1);
    if (controllers == ",,") {
      add_nearest(out, mounted_at, group, "memory.events");
      add_nearest(out, mounted_at / "unified", group, "memory.events");
    } else if (controllers.find(",memory,") != std::string::npos) {
      add_nearest(out, mounted_at / "memory", group, "memory.oom_control");
    }
  }
  return out;
}

i64 oom_victim(const std::string& message) {
  // "Out of memory: Killed process 123 (name) ..." or "Memory cgroup out of memory: Killed process 123 (name)
  // ..."
  const auto at = message.find("Killed process ");
  if (at == std::string::npos || message.find("ut of memory") > at) return 0;
  return std::atoll(message.c_str() + at + 15);
}

OomWatch::OomWatch() {
  std::ifstream in("/proc/self/cgroup");
  std::ostringstream text;
  text << in.rdbuf();
  counters_ = oom_counters(text.str(), "/sys/fs/cgroup");
  counters_.emplace_back("/proc/vmstat");
  kmsg_ = ::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (kmsg_ >= 0) ::lseek(kmsg_, 0, SEEK_END);
}

OomWatch::~OomWatch() {
  if (kmsg_ >= 0) ::close(kmsg_);
}

i64 OomWatch::kills() const {
  i64 sum = 0;  // each counter only grows, so does their sum
  for (const auto& file : counters_) sum += counter(file);
  return sum;
}

bool OomWatch::kernel_named(i64 outside_pid) {
  char message[8192];
  while (kmsg_ >= 0) {
    const ssize_t got = ::read(kmsg_, message, sizeof message - 1);  // one message per read
    if (got < 0 && errno == EPIPE) continue;                         // messages were overwritten: read on
    if (got <= 0) break;
    if (const i64 pid = oom_victim(std::string(message, static_cast<std::size_t>(got))); pid > 0)
      named_.insert(pid);
  }
  return named_.count(outside_pid) > 0;
}

}  // namespace sweep::agent
