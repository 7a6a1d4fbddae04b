#include "orchestrator/run/acquisition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "schema/hardware_kinds.h"

namespace sweep::run {

std::optional<store::Fit> fit_of(const HeldAllocation& held, const Settings& settings) {
  if (!settings.allocate_per_shape) return std::nullopt;
  return store::Fit{held.request.nodes, held.request.hardware, held.request.ranks_per_node,
                    is_mixed(held.request.hardware)};
}

std::string too_few_hosts(const std::vector<RoomForGroup>& groups,
                          const std::vector<std::string>& quarantined) {
  std::vector<std::string> unfit;
  for (const auto& [group, room] : groups)
    if (room && room->ever < group.nodes)
      unfit.push_back(fmt::format("{} that need {} {} {}, of which {} can be used", group.trials, group.nodes,
                                  group.hardware, group.nodes == 1 ? "host" : "hosts", room->ever));
  if (unfit.empty()) return {};
  return fmt::format(
      "trials that need more hosts than there are stay pending: {}{}", fmt::join(unfit, "; "),
      quarantined.empty()
          ? ". Name more hosts of that hardware in the grid's launch section"
          : fmt::format(". In quarantine: {}. Repair them, then run `sweep resume`, with --readmit "
                        "HOST for those that `sweep status` lists as excluded",
                        fmt::join(quarantined, ", ")));
}

// Waiting trials by what they need, with their seconds at the rate so far; on this machine all need the same.
Expected<std::vector<store::Demand>> Acquisition::demand() {
  auto groups = queue_.demand();
  if (!groups || groups->empty()) return groups;
  const double factor = allocations_.slowdown();
  for (auto& group : *groups) {
    group.predicted_s *= factor;
    group.longest_s *= factor;
  }
  if (context_.settings.allocate_per_shape) return groups;
  store::Demand all;
  for (const auto& group : *groups) {
    all.trials += group.trials;
    all.predicted_s += group.predicted_s;
  }
  return std::vector<store::Demand>{all};
}

// Hosts that wait for a moment can be used, but not now.
std::optional<launch::Room> Acquisition::room_for(const store::Demand& group) const {
  if (!context_.settings.allocate_per_shape) return std::nullopt;
  auto room = context_.launcher.room(group.hardware, hosts_.quarantined());
  if (room) room->now = context_.launcher.room(group.hardware, hosts_.avoided(context_.now()))->now;
  return room;
}

// A host of one hardware helps no trial of another: each hardware is requested by itself, within its free
// hosts. Where a scheduler finds the nodes, one request may serve all.
Expected<void> Acquisition::request_for(const std::vector<RoomForGroup>& groups) {
  const Settings& settings = context_.settings;
  std::map<std::string, std::vector<store::Demand>> kinds;
  for (const auto& [group, room] : groups) kinds[room ? group.hardware : ""].push_back(group);
  for (const auto& [hardware, kind] : kinds) {
    Bounds within = settings.bounds;
    if (const auto room = room_for(kind.front())) {
      if (room->now <= 0) continue;
      within.max_nodes = allocations_.nodes() + room->now;
    } else if (settings.allocate_per_shape) {
      within.idle_nodes = context_.launcher.idle_nodes(kind.front().hardware);
    }
    for (const Wanted& wanted : allocations_wanted(kind, allocations_.capacities(), within))
      SWEEP_TRY(allocations_.request(wanted, hosts_.avoided(context_.now())));
  }
  return {};
}

// People are told when the sentence changes. Returns why nothing can run, where that is so of every group.
Expected<std::optional<std::string>> Acquisition::unfit(const std::vector<RoomForGroup>& rooms) {
  std::vector<store::Demand> groups;
  for (const auto& each : rooms) groups.push_back(each.group);
  const auto sentence = too_few_hosts(rooms, hosts_.quarantined());
  if (sentence.empty()) return beyond_bounds(groups, context_.settings.bounds);
  if (sentence != told_) SWEEP_TRY(context_.note(EventKind::kPending, sentence));
  told_ = sentence;
  const bool all = std::ranges::all_of(
      rooms, [](const auto& each) { return each.room && each.room->ever < each.group.nodes; });
  return all ? std::optional(sentence) : beyond_bounds(groups, context_.settings.bounds);
}

Expected<Acquisition::Result> Acquisition::request_wanted() {
  const auto now = context_.now();
  for (const auto& host : hosts_.release_due(now))
    SWEEP_TRY(context_.note(EventKind::kRequestedAgain, fmt::format("node {} is requested once more", host)));
  Result result;
  // Before anything is requested: hosts that are passed over below are waited for.
  const bool hosts_cool_down = !hosts_.cooling(now).empty();
  if (!allocations_.may_request_more()) return result;
  SWEEP_GET(const auto groups, demand());
  std::vector<RoomForGroup> rooms;
  for (const auto& group : groups) rooms.push_back({group, room_for(group)});
  SWEEP_TRY(request_for(rooms));
  SWEEP_GET(result.nothing_fits, unfit(rooms));
  result.waits = hosts_cool_down && !groups.empty();
  return result;
}

Expected<void> Acquisition::release_unwanted() {
  for (const auto& id : allocations_.ids()) {
    HeldAllocation* held = allocations_.find(id);
    if (held == nullptr || !held->waits_to_start() || held->attempts.size() > 0) continue;
    const auto waiting =
        queue_.next(fit_of(*held, context_.settings), 1, [](const PlanEntry&) { return true; });
    if (!waiting) return tl::unexpected(waiting.error());
    if (*waiting) continue;
    SWEEP_TRY(context_.note(
        EventKind::kAllocationReleased,
        fmt::format("allocation {} is given back before it starts: no trial waits for it", id)));
    allocations_.finish(*held, false);
  }
  return {};
}

}  // namespace sweep::run
