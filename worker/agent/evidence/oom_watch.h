// OomWatch: tells an OOM kill of the kernel or of a cgroup from any other SIGKILL. It reads the kill counters
// of the agent's cgroups (v2 memory.events, v1 memory.oom_control) and of the machine (/proc/vmstat), and,
// where it may, the kernel's own messages, which name the pid.
#pragma once
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "schema/trial.h"

namespace sweep::agent {

class OomWatch {
 public:
  OomWatch();
  ~OomWatch();
  OomWatch(const OomWatch&) = delete;
  OomWatch& operator=(const OomWatch&) = delete;

  // Sum of all counters that can be read; only its growth means anything.
  i64 kills() const;
  // Whether a kernel message since our start names this pid.
  bool kernel_named(i64 outside_pid);

 private:
  std::vector<std::filesystem::path> counters_;
  int kmsg_ = -1;
  std::set<i64> named_;
};

// The pid of a kernel message that reports an OOM kill; 0: it reports none.
i64 oom_victim(const std::string& kernel_message);
// The files that count OOM kills for the cgroups of /proc/self/cgroup, innermost first.
std::vector<std::filesystem::path> oom_counters(const std::string& proc_self_cgroup,
                                                const std::filesystem::path& mounted_at);

}  // namespace sweep::agent
