#include "orchestrator/run/time_left.h"

#include <algorithm>
#include <map>
#include <vector>

#include "orchestrator/run/demand.h"

namespace sweep::run {
namespace {

// Real seconds of a trial: `fixed` + `slope` x predicted. Starting costs the same for small and large trials.
struct Fit {
  double fixed = 0, slope = 1, mean = kUnpredicted;
};

Fit fit_of(const std::vector<store::Workload::Done>& done) {
  double n = 0, p = 0, t = 0, pp = 0, pt = 0;
  for (const auto& each : done) {
    if (!each.predicted_s) continue;
    n += 1, p += *each.predicted_s, t += each.took_s();
    pp += *each.predicted_s * *each.predicted_s, pt += *each.predicted_s * each.took_s();
  }
  Fit fit;
  if (!done.empty()) {
    fit.mean = 0;
    for (const auto& each : done) fit.mean += each.took_s() / static_cast<double>(done.size());
  }
  if (n == 0) return fit;
  p /= n, t /= n;
  const double spread = pp / n - p * p, together = pt / n - p * t;
  constexpr double kSpread = 0.1;  // share of the mean: predictions closer than that tell no slope
  const bool told = n >= 3 && spread > kSpread * p * kSpread * p;
  const double slope = told ? together / spread : 1;
  if (slope > 0 && t - slope * p >= 0) return {t - slope * p, slope, fit.mean};
  return {0, p > 0 ? t / p : 1, fit.mean};  // remaining time is in proportion
}

// Nodes that an allocation kept busy on average, between its first start and its last end; a longer pause
// between two trials was a loss, not its pace.
double busy_nodes(std::vector<store::Workload::Done> of) {
  constexpr double kPause = 2;
  std::ranges::sort(of, {}, &store::Workload::Done::started_s);
  double work = 0, span = 0, until = of.front().started_s;
  for (const auto& each : of) {
    work += each.took_s() * static_cast<double>(each.nodes);
    if (const double pause = each.started_s - until; pause > 0 && pause <= kPause) span += pause;
    span += std::max(0.0, each.ended_s - std::max(until, each.started_s));
    until = std::max(until, each.ended_s);
  }
  return span > 0 ? work / span : 1;
}

double width_of(const store::Workload& work) {
  std::map<std::string, std::vector<store::Workload::Done>> by_allocation;
  for (const auto& each : work.done) by_allocation[each.allocation].push_back(each);
  double width = 0;
  for (const auto& [allocation, nodes] : work.open) {
    const auto found = by_allocation.find(allocation);
    width += found == by_allocation.end() ? static_cast<double>(nodes) : busy_nodes(found->second);
  }
  if (width == 0 && !work.done.empty()) width = busy_nodes(by_allocation.at(work.done.front().allocation));
  return width > 0 ? width : 1;
}

}  // namespace

std::optional<double> seconds_left(const store::Workload& work) {
  const bool unknown = work.done.empty() && std::ranges::any_of(work.to_do, [](const auto& group) {
                         return group.unpredicted > 0;
                       });
  if (unknown) return std::nullopt;  // nothing says how long a program takes that has not ended yet
  const Fit fit = fit_of(work.done);
  double node_s = 0, at_once = 0, longest = 0;
  for (const auto& group : work.to_do) {
    const double trials = static_cast<double>(group.trials) - 0.5 * static_cast<double>(group.running);
    const double known = static_cast<double>(group.trials - group.unpredicted);
    const double all =
        fit.fixed * known + fit.slope * group.predicted_s + fit.mean * static_cast<double>(group.unpredicted);
    const double share =
        trials / static_cast<double>(std::max<i64>(1, group.trials));  // running trials count as half done
    const auto nodes = static_cast<double>(std::max<i64>(1, group.nodes));
    node_s += nodes * all * share;
    at_once += nodes * static_cast<double>(group.trials);
    longest = std::max(longest, all * share / std::max(1.0, static_cast<double>(group.trials)));
  }
  if (at_once == 0) return std::nullopt;
  return std::max(longest, node_s / std::min(width_of(work), at_once));
}

}  // namespace sweep::run
