// Leftovers of allocations over ssh on their hosts after their orchestrator is gone: processes, found by
// their mark, and the folder. Lists it and ends it. What the ranks had written by then is copied to this
// machine first.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/launch/ssh/ssh_options.h"
#include "orchestrator/launch/ssh/ssh_shell.h"

namespace sweep::launch {

// One host's part of an allocation, as its record here names it.
struct RemoteNode {
  std::string allocation, host, agent, folder;
  std::filesystem::path spool;  // spool of the allocation on this machine
  std::size_t node = 0;
};
struct RemoteLeftovers {
  RemoteNode of;
  std::vector<std::string> processes;  // "<pid>  <command>", as the host numbers them
};
struct FarHosts {
  std::vector<RemoteLeftovers> left;    // hosts that have a folder or a process
  std::vector<std::string> unanswered;  // "<host>: <why>"
};

// Ends the processes of an allocation on one host, copies the rest of its outbox and its logs into the spool here, and
// then removes its folder there. Error: why not; what was not copied stays there.
awaitable<Expected<void>> clear_host(boost::asio::io_context&, SshShell&, RemoteNode);

// Empty: it was no allocation over ssh, or it ended before anything was started.
std::vector<RemoteNode> far_nodes(const std::filesystem::path& spool, const std::string& allocation);
// Asks every host once, all at the same time.
FarHosts find_far(const SshOptions&, const std::vector<RemoteNode>&);
// Ends the processes, copies the rest of the outbox and the logs into the spool here, removes the folders.
// Its value is what did not work, "<host>: <why>"; on those hosts nothing is removed.
std::vector<std::string> end_far(const SshOptions&, const std::vector<RemoteLeftovers>&);

}  // namespace sweep::launch
