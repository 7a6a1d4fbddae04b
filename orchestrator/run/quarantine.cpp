#include "orchestrator/run/quarantine.h"

#include <fmt/format.h>

#include <algorithm>

namespace sweep::run {
namespace {
// The loss at which a host enters quarantine.
constexpr int kLossAtEntry = 2;
}  // namespace

std::vector<std::string> Quarantine::unclean(const Hosts& hosts, const AttemptEnd& end) {
  std::vector<std::string> named;
  for (const auto& [node, host] : hosts)
    if (hosts.size() == 1 || std::ranges::find(end.unclean_nodes, node) != end.unclean_nodes.end())
      named.push_back(host);
  std::vector<std::string> out;
  for (const auto& host : named)
    for (auto& sentence :
         add(host, fmt::format("attempt {} left it unclean: {}", end.attempt, end.cleanup_failure)))
      out.push_back(std::move(sentence));
  return out;
}

std::vector<std::string> Quarantine::lost(const Hosts& hosts, const std::string& reason) {
  if (hosts.size() != 1) return {};
  const std::string& host = hosts.begin()->second;
  const int losses = ++losses_[host];
  if (losses < kLossAtEntry || reasons_.contains(host)) return {};
  reasons_[host] = reason;
  may_return_.insert(host);
  return {fmt::format(
      "node {} gets no more work for now: {} allocations were lost there without a result, the last one: {}",
      host, losses, reason)};
}

bool Quarantine::release(const std::string& host) {
  return may_return_.erase(host) > 0 && reasons_.erase(host) > 0;
}

int Quarantine::times(const std::string& host) const {
  const auto found = losses_.find(host);
  return found == losses_.end() ? 0 : std::max(0, found->second - kLossAtEntry + 1);
}

std::vector<std::string> Quarantine::hosts() const {
  std::vector<std::string> out;
  for (const auto& [host, why] : reasons_) out.push_back(host);
  return out;
}

std::vector<std::string> Quarantine::add(const std::string& host, const std::string& why) {
  may_return_.erase(host);
  if (!reasons_.emplace(host, why).second) return {};
  return {fmt::format("node {} gets no more work in this run: {}", host, why)};
}

}  // namespace sweep::run
