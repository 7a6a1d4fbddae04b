// Finds by the mark, ends, waits until nothing is found.
#include "orchestrator/launch/leftovers.h"

#include <signal.h>

#include <chrono>
#include <set>
#include <thread>

#include "schema/attempt_token.h"

namespace sweep::launch {

namespace {
constexpr int kRounds = 300;  // of 10 ms: a process in uninterruptible sleep is not waited for any longer
}

i64 clean_leftovers(const std::filesystem::path& spool, const std::string& allocation) {
  const std::string key = allocation_key(allocation, spool);
  std::set<pid_t> ended;
  for (int round = 0; round < kRounds; ++round) {
    const auto found = marked_processes(key);
    if (found.empty()) break;
    for (const auto& process : found) {
      ::kill(process.pid, SIGKILL);
      ended.insert(process.pid);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(rendezvous_home(), ec))
    if (entry.path().filename().string().rfind(key + "-", 0) == 0) {
      std::error_code ignored;
      std::filesystem::remove_all(entry.path(), ignored);
    }
  return static_cast<i64>(ended.size());
}

i64 clean_leftovers(const std::filesystem::path& spool) {
  const auto whole = std::filesystem::absolute(spool).lexically_normal();
  return clean_leftovers(spool, (whole.has_filename() ? whole : whole.parent_path()).filename());
}

}  // namespace sweep::launch
