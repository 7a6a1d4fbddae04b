#include "orchestrator/run/demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "schema/hardware_kinds.h"

namespace sweep::run {
namespace {

constexpr double kSlack = 3;    // a roofline is crude, and start-up is not in it
constexpr double kStart = 300;  // seconds for agents, modules, the first trial
constexpr double kLeast = 1;    // seconds that any trial takes

double seconds_of(const store::Demand& group) {
  return std::max(kLeast * static_cast<double>(group.trials),
                  group.predicted_s + kUnpredicted * static_cast<double>(group.unpredicted));
}

double seconds_to_request(double work_s, double longest_s, const Bounds& bounds) {
  const double wanted = kStart + kSlack * (work_s + longest_s);
  return bounds.time_s ? std::min(wanted, *bounds.time_s) : wanted;
}

i64 largest(const std::vector<store::Demand>& groups) {
  i64 nodes = 1;
  for (const auto& group : groups) nodes = std::max(nodes, group.nodes);
  return nodes;
}

bool serves(const Capacity& held, const store::Demand& group) {
  const bool room = is_mixed(group.hardware) ? held.nodes == group.nodes : held.nodes >= group.nodes;
  return held.hardware == group.hardware && room && held.gpus_per_node >= group.gpus_per_node;
}

// Trials of a group that allocations with time to spare can run at once.
i64 places_in(const std::vector<Capacity>& held, const store::Demand& group) {
  i64 places = 0;
  for (const Capacity& each : held)
    if (serves(each, group) && each.spare_s > 0) places += each.nodes / group.nodes;
  return places;
}

// The part of a group's node-seconds that the held allocations can take.
double cover(const store::Demand& group, double work, std::vector<Capacity>& held) {
  for (Capacity& each : held) {
    if (!serves(each, group)) continue;
    const double taken = std::min(work, std::max(0.0, each.spare_s));
    each.spare_s -= taken;
    work -= taken;
  }
  return work;
}

// The nodes and allocations that may still be requested.
struct Room {
  i64 nodes, places, idle;
};

// Allocations of their own for the trials of a group while nodes stand idle: each begins, and is given back,
// by itself.
void spread_over_idle(const store::Demand& group, std::vector<Capacity>& held, Room& room,
                      const Bounds& bounds, std::vector<Wanted>& out) {
  const double work = seconds_of(group) * static_cast<double>(group.nodes);
  i64 beside = 0;  // trials of the group that the allocations there are can run at once
  for (const Capacity& each : held)
    if (serves(each, group)) beside += each.nodes / group.nodes;
  const auto worth = static_cast<i64>(std::ceil(work / (bounds.spread_s * static_cast<double>(group.nodes))));
  const i64 most = std::min(room.idle, room.nodes) / group.nodes;
  i64 more = std::min(std::min(group.trials, worth) - beside, most);
  const double share = work / static_cast<double>(std::max<i64>(1, (beside + more) * group.nodes));
  while (more > 0 && room.places > 0) {
    i64 here = (more + room.places - 1) / room.places;
    if (is_mixed(group.hardware)) here = 1;
    if (bounds.most_nodes_each > 0)
      here = std::min(here, std::max<i64>(1, bounds.most_nodes_each / group.nodes));
    const i64 nodes = here * group.nodes;
    out.push_back(
        {group.hardware, nodes, group.gpus_per_node, seconds_to_request(share, group.longest_s, bounds)});
    held.push_back({group.hardware, nodes, group.gpus_per_node, 0});
    more -= here, room.nodes -= nodes, room.idle -= nodes, --room.places;
  }
}

}  // namespace

double SlowdownEstimate::factor() const {
  constexpr double kSaysLittle = 120;  // node-seconds: programs start, the first trial warms up
  if (held_s < kSaysLittle) return 1;
  return std::max(1.0, held_s / std::max(predicted_s, kLeast));
}

double predicted_node_seconds(const PlanEntry& entry) {
  return std::max(kLeast, entry.predicted.seconds.value_or(kUnpredicted)) *
         static_cast<double>(entry.trial.nodes);
}

double target_seconds(const Bounds& bounds) {
  return bounds.time_s ? std::min(bounds.min_work_per_node_s, *bounds.time_s) : bounds.min_work_per_node_s;
}

std::vector<Wanted> allocations_wanted(const std::vector<store::Demand>& groups, std::vector<Capacity> held,
                                       const Bounds& bounds) {
  const double target = target_seconds(bounds);
  const i64 most = bounds.max_nodes > 0 ? bounds.max_nodes : largest(groups);
  const bool spreads = bounds.idle_nodes > 0 && bounds.spread_s > 0 && !bounds.all_nodes;
  i64 taken = 0;
  for (const Capacity& each : held) taken += each.nodes;
  Room room{most - taken, bounds.max_allocations - static_cast<i64>(held.size()), bounds.idle_nodes};
  auto ordered = groups;
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.nodes > b.nodes; });
  std::vector<Wanted> out;
  for (const store::Demand& group : ordered) {
    const auto nodes = static_cast<double>(group.nodes);
    i64 places = places_in(held, group);
    double work = cover(group, seconds_of(group) * nodes, held);
    // One trial needs one place, however long it takes.
    while (work > 0 && places < group.trials && room.places > 0 && group.nodes <= room.nodes) {
      // A part of several kinds of node could be of one kind alone.
      const i64 at_once = is_mixed(group.hardware) ? 1 : group.trials;
      const i64 useful = std::min(at_once, static_cast<i64>(std::ceil(work / (nodes * target))));
      const i64 each = bounds.most_nodes_each > 0 ? std::min(room.nodes, bounds.most_nodes_each) : room.nodes;
      const i64 side_by_side = std::clamp<i64>(useful, 1, std::max<i64>(1, each / group.nodes));
      const i64 total = bounds.all_nodes ? room.nodes : side_by_side * group.nodes;
      const double share = std::min(work, target * static_cast<double>(total));
      out.push_back({group.hardware, total, group.gpus_per_node,
                     seconds_to_request(share / static_cast<double>(total), group.longest_s, bounds)});
      held.push_back(
          {group.hardware, total, group.gpus_per_node, target * static_cast<double>(total) - share});
      work -= share;
      places += total / group.nodes;
      room.nodes -= total, room.idle -= total, --room.places;
    }
  }
  if (!spreads) return out;
  if (bounds.max_nodes <= 0) room.nodes += most * (bounds.max_allocations - 1);
  for (const store::Demand& group : ordered) spread_over_idle(group, held, room, bounds, out);
  return out;
}

std::optional<std::string> beyond_bounds(const std::vector<store::Demand>& groups, const Bounds& bounds) {
  if (groups.empty() || bounds.max_nodes <= 0) return std::nullopt;
  i64 smallest = groups.front().nodes;
  for (const auto& group : groups) smallest = std::min(smallest, group.nodes);
  if (smallest <= bounds.max_nodes) return std::nullopt;
  if (bounds.all_nodes)
    return fmt::format(
        "the trials that are left need {} nodes or more, and the job has {}; take a larger job, or jobs of "
        "sweep's own "
        "with --on slurm",
        smallest, bounds.max_nodes);
  return fmt::format(
      "the trials that are left need {} nodes or more, and max_nodes is {}; raise it to run them", smallest,
      bounds.max_nodes);
}

}  // namespace sweep::run
