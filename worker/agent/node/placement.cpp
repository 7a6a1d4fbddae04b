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

// The lowest ones where its trial has not failed, then the others. One where nothing ended well yet may be bad: the attempt
// waits for another one instead, as long as there is one.
std::vector<i64> Placement::nodes_for(const Attempt& attempt) const {
  const auto wanted = static_cast<std::size_t>(attempt.nodes_needed());
  std::vector<i64> out, failed;
  bool another = false;
  for (i64 i = 0; i < static_cast<i64>(nodes_.size()); ++i) {
    const Node& node = nodes_[static_cast<std::size_t>(i)];
    const bool free = fits(node, attempt);
    if (trust_.failed_on(attempt.trial_id, i)) {
      if (free) failed.push_back(i);
    } else if (free) {
      out.push_back(i);
    } else {
      another = another || node.usable;
    }
  }
  if (another) std::erase_if(failed, [&](i64 node) { return !trust_.proven(node); });
  out.insert(out.end(), failed.begin(), failed.end());
  if (out.size() < wanted) return {};
  out.resize(wanted);
  std::ranges::sort(out);
  return out;
}

std::optional<Placement::Placed> Placement::take() {
  if (waiting_.empty()) return std::nullopt;
  const Attempt& next = waiting_.front();
  Placed out;
  out.nodes = nodes_for(next);
  if (out.nodes.empty()) return std::nullopt;
  const auto wanted = out.nodes.size();
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
