// Where hosts are given by name: what is asked for of those that are left, and which trials none is left for.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "orchestrator/run/sweep_runner.h"

namespace sweep::run {

// Hosts that will be asked for once more, but not yet: an sshd that starts anew is back in some seconds.
std::vector<std::string> SweepRunner::cooling_hosts() const {
  std::vector<std::string> out;
  const auto gone = quarantine_.hosts();
  for (const auto& [host, until] : cooling_hosts_)
    if (clock_.now() < until && std::ranges::find(gone, host) == gone.end()) out.push_back(host);
  return out;
}

// A host by which an allocation was lost without a result. Whoever mends it need not know of this run: it is asked
// for again after a rest that doubles each time. Nobody waits for that: what fits it alone stays pending.
void SweepRunner::out_for_now(const Hosts& hosts, const std::string& reason) {
  constexpr int kMostDoublings = 10;
  for (const auto& sentence : quarantine_.lost(hosts, reason)) {
    note("quarantine", sentence);
    const auto& host = hosts.begin()->second;
    const int doublings = std::min(quarantine_.times_out(host) - 1, kMostDoublings);
    quarantined_until_[host] = clock_.now() + span_of(settings_.quarantine_initial_s * (1 << doublings));
  }
}

void SweepRunner::let_back() {
  for (auto each = quarantined_until_.begin(); each != quarantined_until_.end();) {
    const auto [host, at] = *each;
    if (clock_.now() < at) {
      ++each;
      continue;
    }
    each = quarantined_until_.erase(each);
    if (quarantine_.let_back(host)) note("quarantine", fmt::format("node {} is asked for once more", host));
  }
}

std::vector<std::string> SweepRunner::avoided() const {
  auto out = quarantine_.hosts();
  for (auto& host : cooling_hosts()) out.push_back(std::move(host));
  return out;
}

// Those at rest are there, but not now.
std::optional<launch::Room> SweepRunner::room_for(const store::Demand& group) const {
  if (!settings_.allocate_per_shape) return std::nullopt;
  auto room = launcher_->room(group.hardware, quarantine_.hosts());
  if (room) room->now = launcher_->room(group.hardware, avoided())->now;
  return room;
}

// A host of one hardware helps no trial of another: each is asked for by itself, within the hosts that are free.
void SweepRunner::ask_for(const std::vector<store::Demand>& groups) {
  std::map<std::string, std::vector<store::Demand>> kinds;  // all in one where a scheduler finds the nodes
  for (const auto& group : groups) kinds[room_for(group) ? group.hardware : ""].push_back(group);
  for (const auto& [hardware, kind] : kinds) {
    Bounds within = settings_.bounds;
    if (const auto room = room_for(kind.front())) {
      if (room->now <= 0) continue;
      within.max_nodes = nodes_held() + room->now;
    } else if (settings_.allocate_per_shape) {
      within.idle_nodes = launcher_->idle_nodes(kind.front().hardware);
    }
    for (const Wanted& wanted : allocations_wanted(kind, capacities(clock_.now()), within)) {
      request(wanted);
      if (error_) return;
    }
  }
}

// What no host is left for, said when it changes. The answer: the same where nothing else is left to run.
std::optional<std::string> SweepRunner::beyond_hosts(const std::vector<store::Demand>& groups) {
  std::vector<std::string> beyond;
  for (const auto& group : groups) {
    const auto room = room_for(group);
    if (!room || room->ever >= group.nodes) continue;
    beyond.push_back(fmt::format("{} that need {} {} {}, of which {} can be used", group.trials, group.nodes,
                                 group.hardware, group.nodes == 1 ? "host" : "hosts", room->ever));
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

// A node that is not what the trials declare ends the run before its first trial: each would end as unsupported, or as a
// result under another hardware's name. The head agent's record comes last, when the others have joined.
void SweepRunner::on_node(HeldAllocation& holding, const NodeRecord& node) {
  const auto host = holding.hosts.try_emplace(node.node, node.host).first->second;
  seen_slow(host, node);
  holding.joined = holding.joined || node.node == 0;
  if (!settings_.judge_node || end_) return;
  const auto why =
      settings_.judge_node(node, settings_.allocate_per_shape ? holding.request.hardware : std::string(),
                           settings_.allocate_per_shape ? holding.request.ranks_per_node : 0);
  if (!why) return;
  note("hardware", fmt::format("node {}: {}", host, *why));
  end_with(End::kBroken,
           fmt::format("node {}: {}; nothing more is started, and no trial has lost its place", host, *why),
           false);
}

}  // namespace sweep::run
