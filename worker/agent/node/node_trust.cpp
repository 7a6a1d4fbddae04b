#include "worker/agent/node/node_trust.h"

#include <algorithm>

namespace sweep::agent {
namespace {

// Attempts in a row that failed before their first step, on a node where none ended well.
constexpr i64 kFailuresOfABadNode = 3;

}  // namespace

void NodeTrust::ok(i64 node) {
  Node& at = nodes_[static_cast<std::size_t>(node)];
  ++at.oks;
  at.early_failures = 0;
}

void NodeTrust::failed(const std::string& trial, i64 node, bool early) {
  failed_[trial].insert(node);
  Node& at = nodes_[static_cast<std::size_t>(node)];
  at.early_failures = early ? at.early_failures + 1 : 0;
}

bool NodeTrust::failed_on(const std::string& trial, i64 node) const {
  const auto found = failed_.find(trial);
  return found != failed_.end() && found->second.contains(node);
}

std::optional<i64> NodeTrust::bad_node() {
  if (std::ranges::none_of(nodes_, [](const Node& node) { return node.oks > 0; })) return std::nullopt;
  const auto bad = std::ranges::find_if(nodes_, [](const Node& node) {
    return !node.named && node.oks == 0 && node.early_failures >= kFailuresOfABadNode;
  });
  if (bad == nodes_.end()) return std::nullopt;
  bad->named = true;
  return bad - nodes_.begin();
}

}  // namespace sweep::agent
