// The launcher `ssh`: every allocation is a set of named hosts, each used by one allocation at a time. Allocations
// outlive this process; the next one adopts them.
#pragma once
#include <memory>

#include "orchestrator/launch/launch_config.h"
#include "orchestrator/launch/ssh/ssh_options.h"

namespace sweep::launch {

std::unique_ptr<Launcher> make_ssh(boost::asio::io_context&, SshOptions, Programs, Launcher::Sink);

// The checks of `sweep doctor --on ssh` on every host, in the order in which a run would fail. Error: our
// agent cannot be read.
Expected<std::vector<Finding>> check_ssh(const SshOptions&, const CheckRequest&);

}  // namespace sweep::launch
