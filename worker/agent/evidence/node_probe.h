// Node probe: the facts of this machine that a result may depend on, gathered once when the agent starts. An
// allow-list; nothing of the environment or of users.
#pragma once
#include <string>
#include <vector>

#include "schema/records.h"
#include "worker/agent/evidence/nvml.h"

namespace sweep::agent {

NodeRecord probe_node(const Nvml* nvml);  // null: no GPU
// The text of a NodeProbe.
std::string probe_machine(const Nvml* nvml, const std::vector<std::string>& paths);

}  // namespace sweep::agent
