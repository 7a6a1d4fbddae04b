#include "orchestrator/run/excluded_hosts.h"

#include <algorithm>

namespace sweep::run {

void ExcludedHosts::cool_down(const std::string& host, Clock::Point now) {
  cooling_until_[host] = now + span_of(limits_.cooldown_s);
}

std::vector<std::string> ExcludedHosts::lost(const Hosts& hosts, const std::string& reason,
                                             Clock::Point now) {
  constexpr int kMostDoublings = 10;
  auto sentences = quarantine_.lost(hosts, reason);
  if (sentences.empty()) return sentences;
  const auto& host = hosts.begin()->second;
  const int doublings = std::min(quarantine_.times(host) - 1, kMostDoublings);
  quarantined_until_[host] = now + span_of(limits_.quarantine_initial_s * (1 << doublings));
  return sentences;
}

std::vector<std::string> ExcludedHosts::release_due(Clock::Point now) {
  std::vector<std::string> back;
  for (auto each = quarantined_until_.begin(); each != quarantined_until_.end();) {
    if (now < each->second) {
      ++each;
      continue;
    }
    if (quarantine_.release(each->first)) back.push_back(each->first);
    each = quarantined_until_.erase(each);
  }
  return back;
}

std::vector<std::string> ExcludedHosts::cooling(Clock::Point now) const {
  std::vector<std::string> out;
  const auto quarantined = quarantine_.hosts();
  for (const auto& [host, until] : cooling_until_)
    if (now < until && std::ranges::find(quarantined, host) == quarantined.end()) out.push_back(host);
  return out;
}

std::vector<std::string> ExcludedHosts::avoided(Clock::Point now) const {
  auto out = quarantine_.hosts();
  for (auto& host : cooling(now)) out.push_back(std::move(host));
  return out;
}

}  // namespace sweep::run
