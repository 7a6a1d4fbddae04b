// SshConfig: the launcher `ssh`: hosts that are named and reached over ssh.
#pragma once
#include "orchestrator/launch/launch_config.h"
#include "orchestrator/launch/ssh/ssh_options.h"

namespace sweep::launch {

// The checks of `sweep doctor --on ssh` on every host, in the order in which a run would fail. Error: our
// agent cannot be read.
Expected<std::vector<Finding>> check_ssh(const SshOptions&, const CheckRequest&);

}  // namespace sweep::launch
