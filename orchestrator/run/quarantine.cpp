#include "orchestrator/run/quarantine.h"

#include <fmt/format.h>

namespace sweep::run {
namespace {
constexpr int kStrikes = 2;
}

std::vector<std::string> Quarantine::unclean(const Hosts& hosts, const AttemptEnd& end) {
  std::vector<std::string> named;
  for (const auto& [node, host] : hosts)  // the agents say "node 1 (its own name)"
    if (hosts.size() == 1 || end.dirt.find(fmt::format("node {} (", node)) != std::string::npos)
      named.push_back(host);
  std::vector<std::string> out;
  for (const auto& host : named)
    for (auto& sentence : add(host, fmt::format("attempt {} left it unclean: {}", end.attempt, end.dirt)))
      out.push_back(std::move(sentence));
  return out;
}

std::vector<std::string> Quarantine::lost(const Hosts& hosts, const std::string& reason) {
  if (hosts.size() != 1) return {};
  const std::string& host = hosts.begin()->second;
  if (++strikes_[host] < kStrikes) return {};
  return add(host, fmt::format("{} allocations were lost there without a result, the last one: {}", kStrikes,
                               reason));
}

std::vector<std::string> Quarantine::hosts() const {
  std::vector<std::string> out;
  for (const auto& [host, why] : reasons_) out.push_back(host);
  return out;
}

std::vector<std::string> Quarantine::add(const std::string& host, const std::string& why) {
  if (!reasons_.emplace(host, why).second) return {};
  return {fmt::format("node {} gets no more work in this run: {}", host, why)};
}

}  // namespace sweep::run
