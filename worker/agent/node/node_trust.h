// NodeTrust: what the ends of attempts say of the nodes that they ran on. One bad node ends each trial within
// a moment, is free again first, and so takes more trials than all good ones together: a retry goes elsewhere,
// and a node where several attempts in a row failed before their first step gets no more work while others
// have results. Where every node fails, the trials are the cause, and nothing is held against a node. Pure.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "schema/trial.h"

namespace sweep::agent {

class NodeTrust {
 public:
  explicit NodeTrust(i64 nodes) : nodes_(static_cast<std::size_t>(nodes)) {}

  // An attempt ended well on the node.
  void ok(i64 node);
  // An attempt of the trial failed on the node; early: before its first step.
  void failed(const std::string& trial, i64 node, bool early);

  // Whether an attempt of the trial failed there.
  bool failed_on(const std::string& trial, i64 node) const;
  // Whether any attempt ended well there.
  bool proven(i64 node) const { return of(node).oks > 0; }
  // A node that gets no more work from now on; named once.
  std::optional<i64> bad_node();

 private:
  struct Node {
    i64 oks = 0;
    // In a row.
    i64 early_failures = 0;
    bool named = false;
  };
  const Node& of(i64 node) const { return nodes_[static_cast<std::size_t>(node)]; }

  std::vector<Node> nodes_;
  std::map<std::string, std::set<i64>> failed_;
};

}  // namespace sweep::agent
