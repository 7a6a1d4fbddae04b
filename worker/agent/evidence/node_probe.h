// Node probe: the facts of this machine that a result may depend on, gathered once when the agent starts. An
// allow-list; nothing of the environment or of users.
#pragma once
#include <string>
#include <vector>

#include "schema/records.h"
#include "worker/agent/evidence/nvml.h"

namespace sweep::agent {

NodeRecord probe_node(const Nvml* nvml);  // null: no GPU
// The same facts as one line of JSON, with host, unix_ns, shm_bytes (free), and paths: what each is to this
// user here: absent, readable, executable, or writable (a folder).
std::string probe_machine(const Nvml* nvml, const std::vector<std::string>& paths);

}  // namespace sweep::agent
