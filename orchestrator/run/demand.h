// Demand: which allocations the pending trials are worth, by what they need, what is held, and the bounds.
// Pure: it uses neither the store nor a launcher.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/store/store.h"

namespace sweep::run {

// Seconds of a trial without a prediction.
inline constexpr double kUnpredicted = 120;

struct Bounds {
  // Held at once, all allocations together; 0: what the largest trial needs.
  i64 max_nodes = 0;
  // Held at once.
  i64 max_allocations = 1;
  // The longest time that may be requested.
  std::optional<double> time_s;
  // The most nodes of one allocation, unless a trial needs more; 0: what max_nodes leaves.
  i64 most_nodes_each = 0;
  // An allocation takes whatever max_nodes leaves: those nodes are held anyway.
  bool all_nodes = false;
  // Nodes that are idle now. A further allocation is requested while there are spread_s predicted seconds of
  // work for each node that the group has, up to what is idle. Without max_nodes, max_allocations of the
  // largest trial's nodes.
  i64 idle_nodes = 0;
  // 0: idle nodes make no difference.
  double spread_s = 10;
  // This much work per node is worth further nodes: half an hour if there is a queue.
  double min_work_per_node_s = 1800;
};

// How long trials really take compared with what the plan predicted, in node-seconds.
struct SlowdownEstimate {
  // Node-seconds for which nodes were there for the work.
  double held_s = 0;
  // Predicted time of the trials that ended in that time or are under way.
  double predicted_s = 0;
  void add(const SlowdownEstimate& other) { held_s += other.held_s, predicted_s += other.predicted_s; }
  // 1 or more; 1 until enough has been seen.
  double factor() const;
};
// Node-seconds that the plan predicts for a trial.
double predicted_node_seconds(const PlanEntry&);

// An allocation that is held or requested, and what it can still take.
struct Capacity {
  std::string hardware;
  i64 nodes = 1, gpus_per_node = 1;
  // Node-seconds.
  double spare_s = 0;
};

struct Wanted {
  std::string hardware;
  i64 nodes = 1, gpus_per_node = 1;
  // Seconds to request: the predicted time with slack.
  double seconds = 0;
  // GPUs of each node to request, where so many slots of a node may be busy at once; 0: none.
  i64 gpus(i64 slots) const { return hardware == "cpu" ? 0 : std::max(gpus_per_node, slots); }
};

// The largest trials first: what their allocation has left takes smaller ones, several side by side. Small
// trials get allocations of their own where there is more work than that, as far as the bounds allow.
std::vector<Wanted> allocations_wanted(const std::vector<store::Demand>&, std::vector<Capacity> held,
                                       const Bounds&);

// How long an allocation should last: long enough to be worth its wait in the queue, short enough to start
// soon.
double target_seconds(const Bounds&);

// Why nothing of this can ever be requested; nullopt: something can.
std::optional<std::string> beyond_bounds(const std::vector<store::Demand>&, const Bounds&);

}  // namespace sweep::run
