// Node probe: the facts of this machine that a result may depend on, gathered once when the agent starts. An
// allow-list; nothing of the environment or of users.
#pragma once
#include "schema/records.h"
#include "worker/agent/nvml.h"

namespace sweep::agent {

NodeRecord probe_node(const Nvml* nvml);  // null: no GPU

}  // namespace sweep::agent
