// Demand: which allocations the pending trials are worth. Pure: groups by what they need, what is held, the
// bounds; it asks neither the store nor a launcher.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/store/store.h"

namespace sweep::run {

inline constexpr double kUnpredicted = 120;  // seconds of a trial that nobody predicted

struct Bounds {
  i64 max_nodes = 0;             // held at once, all allocations together; 0: what the largest trial needs
  i64 max_allocations = 1;       // held at once
  std::optional<double> time_s;  // the longest one may be asked for
  i64 most_nodes_each = 0;       // of one allocation, unless a trial needs more; 0: what max_nodes leaves
  bool all_nodes = false;        // an allocation takes whatever max_nodes leaves: those nodes are held anyway
  // Nodes that wait for nobody: a further allocation is asked for while so many predicted seconds of work are there for
  // each node that the group has, up to what is idle. Without max_nodes, max_allocations of the largest trial's nodes.
  i64 idle_nodes = 0;
  double spread_s = 10;  // 0: idle nodes make no difference
  double min_work_per_node_s =
      1800;  // so much work is worth nodes of its own: half an hour where there is a queue
};

// How long trials really take compared with what the plan predicted, in node-seconds.
struct SlowdownEstimate {
  double held_s = 0;       // nodes were there for the work
  double predicted_s = 0;  // of what was done in that time or is under way
  void add(const SlowdownEstimate& other) { held_s += other.held_s, predicted_s += other.predicted_s; }
  double factor() const;  // 1 or more; 1 until enough has been seen
};
// Node-seconds that the plan predicts for a trial.
double predicted_node_seconds(const PlanEntry&);

// An allocation that is held or asked for, and what it can still take on.
struct Capacity {
  std::string hardware;
  i64 nodes = 1, gpus_per_node = 1;
  double spare_s = 0;  // node-seconds
};

struct Wanted {
  std::string hardware;
  i64 nodes = 1, gpus_per_node = 1;
  double seconds = 0;  // to ask for: the predicted time with slack
  // GPUs of each node to ask for, where so many slots of a node may be busy at once; 0: none.
  i64 gpus(i64 slots) const { return hardware == "cpu" ? 0 : std::max(gpus_per_node, slots); }
};

// The largest trials first: what their allocation has left takes smaller ones, several side by side. Small
// trials get allocations of their own where there is more work than that, as far as the bounds allow.
std::vector<Wanted> allocations_wanted(const std::vector<store::Demand>&, std::vector<Capacity> held,
                                       const Bounds&);

// How long an allocation should last: long enough to be worth its queue, short enough to be given soon.
double target_seconds(const Bounds&);

// Why nothing of this can ever be asked for; absent: something can.
std::optional<std::string> beyond_bounds(const std::vector<store::Demand>&, const Bounds&);

}  // namespace sweep::run
