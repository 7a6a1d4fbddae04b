// The SSH launcher: every allocation is a set of hosts, each used by one allocation at a time. Allocations
// outlive this process; the next one adopts them.
#pragma once
#include <memory>

#include "orchestrator/launch/launcher.h"
#include "orchestrator/launch/slurm/slurm_script.h"
#include "orchestrator/launch/ssh/ssh_options.h"

namespace sweep::launch {

std::unique_ptr<Launcher> make_ssh(boost::asio::io_context&, SshOptions, Programs, Launcher::Sink);

}  // namespace sweep::launch
