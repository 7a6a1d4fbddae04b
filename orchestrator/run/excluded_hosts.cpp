#include "orchestrator/run/excluded_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sweep::run {
namespace {
// The loss at which a host enters quarantine.
constexpr int kLossAtEntry = 2;
constexpr int kMostDoublings = 10;
constexpr Clock::Point kEndOfRun = Clock::Point::max();
}  // namespace

void ExcludedHosts::cool_down(const std::string& host, Clock::Point now) {
  hosts_[host].cooling_until = now + span_of(limits_.cooldown_s);
}

std::vector<std::string> ExcludedHosts::keep_out(const std::string& host, const std::string& why) {
  if (std::exchange(hosts_[host].quarantined_until, kEndOfRun)) return {};
  return {fmt::format("node {} gets no more work in this run: {}", host, why)};
}

std::vector<std::string> ExcludedHosts::excluded(const std::string& host, const std::string& why) {
  return keep_out(host, fmt::format("{}; `sweep resume --readmit {}` takes it back", why, host));
}

std::vector<std::string> ExcludedHosts::unclean(const Hosts& hosts, const AttemptEnd& end) {
  std::vector<std::string> out;
  for (const auto& [node, host] : hosts)
    if (hosts.size() == 1 || std::ranges::find(end.unclean_nodes, node) != end.unclean_nodes.end())
      for (auto& sentence :
           keep_out(host, fmt::format("attempt {} left it unclean: {}", end.attempt, end.cleanup_failure)))
        out.push_back(std::move(sentence));
  return out;
}

bool ExcludedHosts::failed_on(const Hosts& hosts, const std::string& trial) const {
  if (hosts.size() != 1) return false;
  const auto& host = hosts.begin()->second;
  return trust_.failed_on(trial, host) && !trust_.proven(host);
}

std::vector<std::string> ExcludedHosts::lost(const Hosts& hosts, const std::string& reason,
                                             Clock::Point now) {
  if (hosts.size() != 1) return {};
  const auto& name = hosts.begin()->second;
  Host& host = hosts_[name];
  if (++host.losses < kLossAtEntry || host.quarantined_until) return {};
  const int doublings = std::min(host.losses - kLossAtEntry, kMostDoublings);
  host.quarantined_until = now + span_of(limits_.quarantine_initial_s * (1 << doublings));
  return {fmt::format(
      "node {} gets no more work for now: {} allocations were lost there without a result, the last one: {}",
      name, host.losses, reason)};
}

std::vector<std::string> ExcludedHosts::release_due(Clock::Point now) {
  std::vector<std::string> back;
  for (auto& [name, host] : hosts_) {
    if (!host.quarantined_until || now < *host.quarantined_until) continue;
    host.quarantined_until.reset();
    back.push_back(name);
  }
  return back;
}

std::vector<std::string> ExcludedHosts::cooling(Clock::Point now) const {
  std::vector<std::string> out;
  for (const auto& [name, host] : hosts_)
    if (host.cooling_until && now < *host.cooling_until && !host.quarantined_until) out.push_back(name);
  return out;
}

std::vector<std::string> ExcludedHosts::quarantined() const {
  std::vector<std::string> out;
  for (const auto& [name, host] : hosts_)
    if (host.quarantined_until) out.push_back(name);
  return out;
}

std::vector<std::string> ExcludedHosts::avoided(Clock::Point now) const {
  auto out = quarantined();
  for (auto& host : cooling(now)) out.push_back(std::move(host));
  return out;
}

}  // namespace sweep::run
