// Finds and ends what is left of an attempt after its ranks were ended.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/attempt_token.h"
#include "worker/agent/evidence/proc_facts.h"
#include "worker/agent/node/attempt_run.h"

namespace sweep::agent {

std::vector<std::string> kill_leftovers(const AttemptContext& context, i64 attempt) {
  std::vector<std::string> left;
  const auto end_it = [&](pid_t pid, char state, const std::string& command) {
    ::kill(pid, SIGKILL);
    left.push_back(fmt::format("{} (pid {}, state {})", command, outside_pid(context.inside, pid), state));
  };
  const bool alone = context.host.alone();
  std::vector<pid_t> seen = {context.zygote.pid(), ::getppid()};
  for (const auto& child : children())
    if (context.host.spared(child.pid)) seen.push_back(child.pid);
  for (const auto& process : marked_processes(context.key)) {
    const bool ours = process.attempt == attempt || (process.attempt == 0 && alone);
    if (!ours || std::ranges::find(seen, process.pid) != seen.end()) continue;
    seen.push_back(process.pid);
    end_it(process.pid, process.state, process.command);
  }
  if (!alone) return left;
  // Adopted children may have removed the mark from their environment.
  for (const auto& child : children())
    if (std::ranges::find(seen, child.pid) == seen.end()) end_it(child.pid, child.state, child.command);
  return left;
}

}  // namespace sweep::agent
