// The check of a cluster by `sweep doctor --on`: what a run there would rely on, asked in the order in which
// it would fail: reachability, versions, paths, clocks, GPUs, then one small trial over the nodes through the
// ordinary launcher.
#pragma once
#include <string>
#include <vector>

#include "orchestrator/driver/doctor_rules.h"
#include "orchestrator/driver/selftest.h"

namespace sweep::driver {

struct ClusterCheckRequest {
  SelfTestRequest selftest;      // db: where the user's own database would lie
  std::string hardware = "cpu";  // hardware of the trial over the nodes
  i64 nodes = 2;
};

// The checks of the launcher of `place`, which is the request's.
Expected<std::vector<Finding>> check_cluster(const ClusterCheckRequest&, const BuiltInPlace& place,
                                             const MakeObserver&);

// Ports and the trial over the nodes. Nothing is left of its database.
Expected<std::vector<Finding>> try_nodes(const ClusterCheckRequest&, i64 nodes, const MakeObserver&);

// Judges the trial over the nodes. there: nodes whose agents connected; events: the first thing that went
// wrong, or empty.
std::vector<Finding> judge_node_trial(const SelfTestReport&, const Trial&, i64 there,
                                      const std::string& events);

}  // namespace sweep::driver
