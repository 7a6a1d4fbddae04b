// Where hosts are given by name: what is asked for of those that are left, and which trials none is left for.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orchestrator/run/conductor_loop.h"

namespace sweep::run {

std::optional<launch::Room> ConductorLoop::room_for(const store::Demand& group) const {
  if (!settings_.by_need) return std::nullopt;
  return launcher_->room(group.hardware, quarantine_.hosts());
}

// A host of one hardware helps no trial of another: each is asked for by itself, within the hosts that are free.
void ConductorLoop::ask_for(const std::vector<store::Demand>& groups) {
  std::map<std::string, std::vector<store::Demand>> kinds;  // all in one where a scheduler finds the nodes
  for (const auto& group : groups) kinds[room_for(group) ? group.hardware : ""].push_back(group);
  for (const auto& [hardware, kind] : kinds) {
    Bounds within = settings_.bounds;
    if (const auto room = room_for(kind.front())) {
      if (room->now <= 0) continue;
      within.max_nodes = nodes_held() + room->now;
    }
    for (const Wanted& wanted : allocations_wanted(kind, capacities(clock_.now()), within)) {
      request(wanted);
      if (error_) return;
    }
  }
}

// What no host is left for, said when it changes. The answer: the same where nothing else is left to run.
std::optional<std::string> ConductorLoop::beyond_hosts(const std::vector<store::Demand>& groups) {
  std::vector<std::string> beyond;
  for (const auto& group : groups) {
    const auto room = room_for(group);
    if (!room || room->ever >= group.nodes) continue;
    beyond.push_back(fmt::format("{} of {} {} hosts, where {} can be used", group.trials, group.nodes,
                                 group.hardware, room->ever));
  }
  if (beyond.empty()) return std::nullopt;
  const auto out = quarantine_.hosts();
  const auto why = fmt::format(
      "trials that need more hosts than there are stay pending: {}{}", fmt::join(beyond, "; "),
      out.empty()
          ? ". Name more hosts of that hardware in the grid's launch section"
          : fmt::format(". Out of this run: {}. Mend them, then `sweep resume`", fmt::join(out, ", ")));
  if (why != left_out_) note("pending", why);
  left_out_ = why;
  return beyond.size() == groups.size() ? std::optional(why) : std::nullopt;
}

}  // namespace sweep::run
