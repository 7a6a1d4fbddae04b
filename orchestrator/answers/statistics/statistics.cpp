#include "orchestrator/answers/statistics/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "orchestrator/answers/format.h"
#include "schema/columns.h"

namespace sweep::answers {

FollowsStep follows_step(std::string_view metric) {
  static const std::set<std::string_view> kRates = {
      "tokens_per_s",        "tokens_per_s_gpu",        "tflops_gpu", "mfu", "hfu", "mt_per_hour",
      "useful_tokens_per_s", "useful_tokens_per_s_gpu", "useful_mfu"};
  if (metric == "step_ms") return FollowsStep::kIsIt;
  if (metric == "cost_per_mt" || metric == "useful_cost_per_mt") return FollowsStep::kProportionally;
  return kRates.contains(metric) ? FollowsStep::kInversely : FollowsStep::kNot;
}

std::optional<Interval> interval_of(FollowsStep how, double value, const StepTime& step) {
  if (std::isnan(step.ms) || !(step.low > 0) || !(step.high >= step.low)) return std::nullopt;
  if (how == FollowsStep::kIsIt) return Interval{step.low, step.high};
  if (how == FollowsStep::kNot || std::isnan(value)) return std::nullopt;
  if (how == FollowsStep::kInversely)
    return Interval{value * step.ms / step.high, value * step.ms / step.low};
  return Interval{value * step.low / step.ms, value * step.high / step.ms};
}

std::optional<Interval> interval_of(const ResultRow& row, std::string_view metric) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const Column* column = find_column(metric);
  const auto value = column ? number(column->get(row)) : std::nullopt;
  const auto& m = row.metrics;
  return interval_of(
      follows_step(metric), value.value_or(kNone),
      {m.step_ms.value_or(kNone), m.step_ms_ci_low.value_or(kNone), m.step_ms_ci_high.value_or(kNone)});
}

bool are_tied(double a, const std::optional<Interval>& of_a, double b, const std::optional<Interval>& of_b) {
  return a == b || (of_a && of_b && of_a->overlaps(*of_b));
}

std::optional<RatioChange> ratio_change(double before, const Interval& of_before, double after,
                                        const Interval& of_after) {
  const auto sound = [](double value, const Interval& i) {
    return i.low > 0 && i.low <= value && value <= i.high && std::isfinite(i.high);
  };
  if (!sound(before, of_before) || !sound(after, of_after)) return std::nullopt;
  const double change = std::log(after / before);
  // How far each interval reaches in the direction that moves the ratio down, and up.
  const double down = std::hypot(std::log(after / of_after.low), std::log(of_before.high / before));
  const double up = std::hypot(std::log(of_after.high / after), std::log(before / of_before.low));
  const double towards_zero = change > 0 ? down : up;
  constexpr double kNormal95 = 1.959963984540054;
  RatioChange out;
  out.share = {std::expm1(change - down), std::expm1(change + up)};
  if (towards_zero > 0)
    out.p = std::erfc(std::fabs(change) / towards_zero * kNormal95 / std::sqrt(2.0));
  else
    out.p = change == 0 ? 1 : 0;
  return out;
}

std::vector<double> benjamini_hochberg(const std::vector<double>& p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] > p[b]; });
  std::vector<double> q(p.size());
  double lowest = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {  // goes from the largest p down
    const double rank = static_cast<double>(order.size() - i);
    lowest = std::min(lowest, p[order[i]] * static_cast<double>(p.size()) / rank);
    q[order[i]] = lowest;
  }
  return q;
}

std::vector<double> average_ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t from = 0; from < order.size();) {
    std::size_t to = from + 1;
    while (to < order.size() && values[order[to]] == values[order[from]]) ++to;
    for (std::size_t i = from; i < to; ++i) ranks[order[i]] = (double(from) + double(to) + 1) / 2;
    from = to;
  }
  return ranks;
}

std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr std::size_t kFewest = 3;
  if (a.size() != b.size() || a.size() < kFewest) return std::nullopt;
  const auto x = average_ranks(a), y = average_ranks(b);
  const double mean = (double(a.size()) + 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

}  // namespace sweep::answers
