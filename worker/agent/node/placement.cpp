#include "worker/agent/node/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace sweep::agent {

namespace {
// Others may run on its node meanwhile.
bool shares(const Attempt& attempt) {
  return attempt.nodes_needed() <= 1;
}
}  // namespace

Placement::Placement(i64 nodes, i64 slots) : nodes_(static_cast<std::size_t>(nodes)), slots_(slots) {}

bool Placement::fits(const Node& node, const Attempt& attempt) const {
  if (!node.usable || node.whole) return false;
  if (node.taken.empty()) return true;
  return shares(attempt) && static_cast<i64>(node.taken.size()) + attempt.processes() <= slots_;
}

std::optional<Placement::Placed> Placement::take() {
  if (waiting_.empty()) return std::nullopt;
  const Attempt& next = waiting_.front();
  const auto wanted = static_cast<std::size_t>(next.nodes_needed());
  Placed out;
  for (std::size_t i = 0; i < nodes_.size() && out.nodes.size() < wanted; ++i)
    if (fits(nodes_[i], next)) out.nodes.push_back(static_cast<i64>(i));
  if (out.nodes.size() < wanted) return std::nullopt;
  const i64 each = next.processes() / static_cast<i64>(wanted);
  for (const i64 number : out.nodes) {
    Node& node = nodes_[static_cast<std::size_t>(number)];
    auto& held = out.slots.emplace_back();
    for (i64 slot = 0; static_cast<i64>(held.size()) < each; ++slot)  // the lowest ones that are free
      if (node.taken.insert(slot).second) held.push_back(slot);
    node.whole = !shares(next);
  }
  out.beside = shares(next) && each < slots_;
  out.attempt = std::move(waiting_.front());
  waiting_.pop_front();
  return out;
}

Placement::Placed Placement::over_all(Attempt attempt) const {
  Placed out;
  std::vector<i64> slots(static_cast<std::size_t>(attempt.processes() / usable_count()));
  std::iota(slots.begin(), slots.end(), 0);
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].usable) out.nodes.push_back(static_cast<i64>(i)), out.slots.push_back(slots);
  out.attempt = std::move(attempt);
  return out;
}

void Placement::release(const Placed& placed) {
  for (std::size_t i = 0; i < placed.nodes.size(); ++i) {
    Node& freed = nodes_[static_cast<std::size_t>(placed.nodes[i])];
    for (const i64 slot : placed.slots[i]) freed.taken.erase(slot);
    freed.whole = false;
  }
}

Attempt Placement::drop_next() {
  Attempt out = std::move(waiting_.front());
  waiting_.pop_front();
  return out;
}

void Placement::give_up(i64 node) {
  nodes_[static_cast<std::size_t>(node)].usable = false;
}

i64 Placement::usable_count() const {
  return std::count_if(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.usable; });
}

bool Placement::stuck() const {
  return usable_count() == 0 || (!waiting_.empty() && waiting_.front().nodes_needed() > usable_count());
}

std::string unplaceable(const Attempt& attempt, i64 nodes) {
  const i64 ranks = attempt.processes(), wanted = attempt.nodes_needed();
  if (wanted > nodes) return fmt::format("it needs {} nodes, this allocation has {}", wanted, nodes);
  if (ranks % wanted != 0) return fmt::format("{} ranks do not divide over {} nodes", ranks, wanted);
  return {};
}

}  // namespace sweep::agent
