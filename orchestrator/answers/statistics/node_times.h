// NodeTimes: the step of a trial over several nodes, node by node: what device each has, how long its slowest rank computes, and how
// long that rank waits for others. Names the slower kind of device where there are several.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/store/store.h"

namespace sweep::answers {

// Means over the timed steps of the rank that computes longest there.
struct NodeTime {
  i64 node = 0, rank = 0;
  std::string host, device;          // empty: not known
  double own_ms = 0, waited_ms = 0;  // the step outside communication, and the wait for it
};

// Empty: one node, a rank that told no times, or none of its waits. `environments`: the nodes of its allocation.
std::vector<NodeTime> node_times(const Trial&, const store::StoredRecords&,
                                 std::span<const Environment> environments);
// The same of a trial's final attempt.
Expected<std::vector<NodeTime>> node_times_of(store::Store&, i64 sweep, const std::string& trial_id,
                                              const Trial&, i64 attempt);

// A line for each node, as "node 0 gpu1 (8 x NVIDIA H100): ...".
std::vector<std::string> node_lines(std::span<const NodeTime>);
// Which kind of device is slower, by how much, and how long the other waits; "": there is one kind, or none waits. A sentence of its own where the
// trial names several kinds (schema/hardware_kinds.h) and ran on one.
std::string slower_kind(const Trial&, std::span<const NodeTime>);
nlohmann::json node_times_json(std::span<const NodeTime>);

}  // namespace sweep::answers
