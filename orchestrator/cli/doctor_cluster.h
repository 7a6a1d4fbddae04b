// `sweep doctor --on ssh|slurm`: what a run there would rely on, asked in the order in which it would fail:
// reachability, versions, paths, clocks, GPUs, then one small attempt over the nodes through the ordinary launcher.
#pragma once
#include <string>
#include <vector>

#include "orchestrator/cli/doctor_rules.h"
#include "orchestrator/cli/selftest.h"

namespace sweep::cli {

struct ClusterCheckRequest {
  SelfTestRequest selftest;      // db: where the user's own database would lie
  std::string hardware = "cpu";  // of the attempt over the nodes
  i64 nodes = 2;
};

// Error: settings that no launcher takes.
Expected<std::vector<Finding>> examine_ssh(Io&, const ClusterCheckRequest&, const LaunchChoice&);
Expected<std::vector<Finding>> examine_slurm(Io&, const ClusterCheckRequest&, const LaunchChoice&);
// Ports and the loop over the nodes, by an attempt of a few steps. Nothing is left of its database.
Expected<std::vector<Finding>> examine_loop(Io&, const ClusterCheckRequest&, i64 nodes);

}  // namespace sweep::cli
