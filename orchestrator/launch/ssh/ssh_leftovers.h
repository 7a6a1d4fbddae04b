// What allocations over ssh have left on their hosts after their orchestrator is gone: processes by their mark, and the
// folder. Shows it, and ends it: what the ranks had said by then is brought here first.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/launch/ssh/ssh_options.h"

namespace sweep::launch {

// One host's part of an allocation, as its record here names it.
struct RemoteNode {
  std::string allocation, host, agent, folder;
  std::filesystem::path spool;  // of the allocation, here
  std::size_t node = 0;
};
struct RemoteLeftovers {
  RemoteNode of;
  std::vector<std::string> processes;  // "<pid>  <command>", as the host numbers them
};
struct FarHosts {
  std::vector<RemoteLeftovers> left;    // where there is a folder or a process
  std::vector<std::string> unanswered;  // "<host>: <why>"
};

// Nothing: it was no allocation over ssh, or ended before anything was started.
std::vector<RemoteNode> far_nodes(const std::filesystem::path& spool, const std::string& allocation);
// Asks every host once, all at the same time.
FarHosts find_far(const SshOptions&, const std::vector<RemoteNode>&);
// Ends the processes, brings the outbox's rest and the logs into the spool here, removes the folders. What did not
// work, "<host>: <why>"; nothing is removed there then.
std::vector<std::string> end_far(const SshOptions&, const std::vector<RemoteLeftovers>&);

}  // namespace sweep::launch
