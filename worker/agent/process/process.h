// Prepares the agent's own process before it serves: the mark by which it is found, the lock that says
// it lives, and leaving the connection that started it.
#pragma once
#include <optional>

#include "worker/agent/net/head_client.h"
#include "worker/agent/options.h"
#include "worker/agent/process/sandbox.h"

namespace sweep::agent {

// Executes this program again with the mark of runtime/attempt_token.h in its environment, where it is not
// there yet: /proc shows what a process was started with. The join line, read already, is handed on through a
// pipe.
Expected<void> mark_self(const Options&, const std::optional<Join>&, char** argv);

// Locks spool::agent_lock() for as long as this process and its children by fork live. An agent that is just
// ending is waited for; a filesystem without locks is accepted.
Expected<void> lock_spool(const Options&);
// Whether an agent holds that lock.
bool agent_lives(const std::filesystem::path& spool);

// Goes on in a child with a session of its own, the spool's agent.log as its output and no input. The calling
// process prints the line that the child writes to the descriptor returned here (tell_launcher), and exits.
Expected<int> detach(const Options&);

AgentReady ready_line(const SandboxInfo&);
AgentReady not_ready(std::string why);
// The line for who started this agent and waits for it; fd -1: none waits. Closes fd.
void tell_launcher(int fd, const AgentReady& line);

}  // namespace sweep::agent
