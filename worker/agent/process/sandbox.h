// Sandbox: splits the agent in two processes, so that nothing of an allocation outlives it. The outer one
// only watches: it forwards signals, ends the inner one when the orchestrator is gone or when it hangs, and
// cleans up after it. The inner one is the agent. Where the system allows it (root, or an unprivileged user
// namespace) the inner one is the init of a new PID namespace: the kernel ends all of it when either of the
// two is killed. Where it does not, ranks die by PDEATHSIG and the outer one, a subreaper too, ends what
// carries the allocation's mark (runtime/attempt_token.h).
#pragma once

#include "base/expected.h"
#include "worker/agent/options.h"

namespace sweep::agent {

struct SandboxInfo {
  bool pid_namespace = false;
  // /proc shows this namespace only.
  bool private_proc = false;
  // Readable once the outer process is gone.
  int outer_pidfd = -1;
  // Readable once the orchestrator is gone; -1: none to watch.
  int parent_pidfd = -1;
  // A pipe to the outer process.
  int beat = -1;
  // /proc as the outer process sees it, for pids that mean something outside.
  int outer_proc = -1;
};

// Forks. Returns in the inner process only, with SIGTERM, SIGINT and SIGCHLD blocked (so that none is lost
// before the event loop takes them); the outer one exits with the inner one's code. REQUIRES: one thread.
Expected<SandboxInfo> enter_sandbox(const Options&);

// The inner process's event loop moves. Once it has said so, a silence of Options::stall_limit_s ends it.
void beat(const SandboxInfo&);

// The pid of a child of this process as it is seen from outside the sandbox.
i64 outside_pid(const SandboxInfo&, pid_t pid);

}  // namespace sweep::agent
