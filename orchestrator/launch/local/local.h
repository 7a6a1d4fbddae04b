// The launcher of this machine: each allocation is an agent that is a child of this process.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "orchestrator/launch/launcher.h"

namespace sweep::launch {

struct LocalOptions {
  std::filesystem::path agent;  // sweep-agent; empty: beside this program
  std::filesystem::path rank;   // sweep-rank (or a fake one in tests); empty: every trial runs a command
  bool allow_zygote = true;
  std::string screen{};         // value of the agent's --screen; empty: the node is not screened
  bool allow_namespace = true;  // a PID namespace for the agent where the system allows it
  // A rehearsal: what the agent's environment gets (NAME=value), by the hardware that an allocation is for.
  // This machine then stands for any number of nodes. Empty: a real run.
  std::map<std::string, std::vector<std::string>> rehearsal{};
};
// The agent is a child of the calling process, started in a session of its own. The destructor ends every
// agent that still runs, at once and with all its ranks, and waits for it.
std::unique_ptr<Launcher> make_local(boost::asio::io_context&, LocalOptions, Launcher::Sink);

}  // namespace sweep::launch
