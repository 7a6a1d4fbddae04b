// Placement: attempts waiting for nodes, first in first out. An attempt of several nodes takes whole,
// disjoint nodes; one of a single node shares it with others while their ranks fit into its slots; no slot is
// held twice. One that needs more than all slots of a node has it alone. No attempt overtakes another, so a
// large one is never starved. A retry goes to nodes where its trial has not failed. Pure bookkeeping.
#pragma once
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "schema/attempt.h"
#include "schema/node_trust.h"

namespace sweep::agent {

class Placement {
 public:
  Placement(i64 nodes, i64 slots);

  // The record of how attempts ended on each node.
  NodeTrust<i64>& trust() { return trust_; }

  void push(Attempt attempt) { waiting_.push_back(std::move(attempt)); }
  struct Placed {
    Attempt attempt;
    // Nodes in rank order.
    std::vector<i64> nodes;
    // The slots that each of them holds.
    std::vector<std::vector<i64>> slots;
    // Others may run on its node meanwhile.
    bool beside = false;
  };
  // The next attempt, if it may start now; it holds its nodes until release().
  std::optional<Placed> take();
  void release(const Placed&);
  // An attempt over all nodes that can be used, before any other one runs: it holds nothing.
  Placed over_all(Attempt) const;
  // The first one waiting; null: none waits.
  const Attempt* next() const { return waiting_.empty() ? nullptr : &waiting_.front(); }
  // Takes it out without a node. REQUIRES: next().
  Attempt drop_next();
  bool empty() const { return waiting_.empty(); }

  // No more work for this node.
  void give_up(i64 node);
  bool usable(i64 node) const { return nodes_[static_cast<std::size_t>(node)].usable; }
  i64 usable_count() const;
  // The first one waiting needs more nodes than can be used.
  bool stuck() const;

 private:
  struct Node {
    // Slots.
    std::set<i64> taken;
    bool whole = false, usable = true;
  };
  bool fits(const Node&, const Attempt&) const;
  // Nodes for the attempt, in rank order; empty: it waits.
  std::vector<i64> nodes_for(const Attempt&) const;
  std::vector<Node> nodes_;
  const i64 slots_;
  std::deque<Attempt> waiting_;
  NodeTrust<i64> trust_;
};

// Why no agent could ever run it; empty: it can be tried.
std::string unplaceable(const Attempt&, i64 nodes);

}  // namespace sweep::agent
