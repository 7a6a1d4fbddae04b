// NodeTrust: what the ends of attempts say of the nodes that they ran on. One bad node ends each trial within
// a moment, is free again first, and so takes more trials than all good ones together: a retry goes elsewhere,
// and a node where several attempts in a row failed before their first step gets no more work while others
// have results. Where every node fails, the trials are the cause, and nothing is held against a node. Pure.
// Node: how its user names nodes; an agent by their numbers, the run loop by their hosts' names.
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "schema/trial.h"

namespace sweep {

template <class Node>
class NodeTrust {
 public:
  // An attempt ended well on the node.
  void ok(const Node& node) {
    Seen& seen = nodes_[node];
    ++seen.oks;
    seen.early_failures = 0;
  }
  // An attempt of the trial failed on the node; early: before its first step.
  void failed(const std::string& trial, const Node& node, bool early) {
    Seen& seen = nodes_[node];
    seen.trials.insert(trial);
    seen.early_failures = early ? seen.early_failures + 1 : 0;
  }

  // Whether an attempt of the trial failed there.
  bool failed_on(const std::string& trial, const Node& node) const {
    const auto found = nodes_.find(node);
    return found != nodes_.end() && found->second.trials.contains(trial);
  }
  // Whether any attempt ended well there.
  bool proven(const Node& node) const {
    const auto found = nodes_.find(node);
    return found != nodes_.end() && found->second.oks > 0;
  }
  // A node that gets no more work from now on; named once.
  std::optional<Node> bad_node() {
    constexpr i64 kFailuresOfABadNode = 3;
    const auto has_results = [](const auto& each) { return each.second.oks > 0; };
    if (std::ranges::none_of(nodes_, has_results)) return std::nullopt;
    const auto bad = std::ranges::find_if(nodes_, [](const auto& each) {
      const Seen& seen = each.second;
      return !seen.named && seen.oks == 0 && seen.early_failures >= kFailuresOfABadNode;
    });
    if (bad == nodes_.end()) return std::nullopt;
    bad->second.named = true;
    return bad->first;
  }

 private:
  struct Seen {
    i64 oks = 0;
    // In a row.
    i64 early_failures = 0;
    bool named = false;
    // Those of which an attempt failed there.
    std::set<std::string> trials;
  };

  std::map<Node, Seen> nodes_;
};

}  // namespace sweep
