// Children of the agent, made by base/process.h.
#include "worker/agent/process/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fail.h"
#include "base/files.h"
#include "base/process.h"
#include "runtime/attempt_token.h"

namespace sweep::agent {

namespace {

std::vector<std::string> environment(const Spawn& wanted) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    if (name != kAttemptVariable && !wanted.variables.contains(name)) out.emplace_back(text);
  }
  for (const auto& [name, value] : wanted.variables) out.push_back(name + "=" + value);
  if (!wanted.token.empty()) out.push_back(std::string(kAttemptVariable) + "=" + wanted.token);
  return out;
}

}  // namespace

Expected<pid_t> spawn(const Spawn& wanted) {
  using Group = ChildProgram::Group;
  ChildProgram child{wanted.argv};
  if (wanted.own_program) child.program = "/proc/self/exe";
  child.environment = environment(wanted);
  child.in = wanted.input;
  child.extra = wanted.channel;
  child.group = wanted.group < 0 ? Group::kOurs : wanted.group == 0 ? Group::kNew : Group::kJoin;
  child.leader = wanted.group;
  child.dies_with_us = true;
  const Descriptor log(
      wanted.log.empty() ? -1 : ::open(wanted.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  child.out = child.err = log.get();  // a log that cannot be opened: the agent's own output
  return start_program(child);
}

// The anchor executes no program, so that it is no use of start_program.
Expected<pid_t> spawn_anchor() {
  const pid_t agent = ::getpid();
  const SignalsHeld held;
  const pid_t pid = ::fork();
  if (pid < 0) return fail("cannot fork: {}", std::strerror(errno));
  if (pid == 0) {
    reset_signals(SIGTERM);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setpgid(0, 0);
    ::close_range(0, ~0U, 0);
    if (::getppid() != agent) ::_exit(0);
    while (true) ::pause();
  }
  ::setpgid(pid, pid);  // parent and child both set it; the first one wins
  return pid;
}

}  // namespace sweep::agent
