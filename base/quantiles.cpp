#include "base/quantiles.h"

#include <algorithm>
#include <cmath>

namespace sweep {
namespace {

// The largest k with 2 P(Binomial(n, 1/2) < k) <= 0.05: the interval is from the k-th smallest to the k-th
// largest.
std::size_t interval_rank(std::size_t n) {
  const double count = static_cast<double>(n);
  if (n > 1000) return static_cast<std::size_t>(count / 2 - 0.98 * std::sqrt(count));  // normal approximation
  double cumulative = 0;
  std::size_t k = 0;
  for (;; ++k) {
    const double i = static_cast<double>(k);
    cumulative += std::exp(std::lgamma(count + 1) - std::lgamma(i + 1) - std::lgamma(count - i + 1) -
                           count * std::log(2.0));
    if (2 * cumulative > 0.05) return k;
  }
}

}  // namespace

std::optional<double> quantile(std::vector<double> v, double q) {
  if (v.empty()) return std::nullopt;
  const double at = q * static_cast<double>(v.size() - 1);
  const auto below = v.begin() + static_cast<std::ptrdiff_t>(at);
  std::nth_element(v.begin(), below, v.end());
  if (below + 1 == v.end()) return *below;
  const double above = *std::min_element(below + 1, v.end());
  return *below + (at - std::floor(at)) * (above - *below);
}

std::optional<double> median(std::vector<double> v) {
  return quantile(std::move(v), 0.5);
}

std::optional<double> interquartile_range(const std::vector<double>& v) {
  if (v.size() < 2) return std::nullopt;
  return *quantile(v, 0.75) - *quantile(v, 0.25);
}

std::optional<std::pair<double, double>> median_interval(std::vector<double> v) {
  if (v.size() < 6) return std::nullopt;
  std::sort(v.begin(), v.end());
  const std::size_t k = interval_rank(v.size());
  return std::pair(v[k - 1], v[v.size() - k]);
}

}  // namespace sweep
