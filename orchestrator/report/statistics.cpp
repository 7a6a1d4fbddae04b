#include "orchestrator/report/statistics.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "orchestrator/report/format.h"
#include "schema/columns.h"

namespace sweep::report {

std::optional<double> quantile(std::vector<double> values, double q) {
  if (values.empty()) return std::nullopt;
  const double at = std::clamp(q, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(below), values.end());
  const double low = values[below];
  if (below + 1 == values.size()) return low;
  const double high =
      *std::min_element(values.begin() + static_cast<std::ptrdiff_t>(below) + 1, values.end());
  return low + (at - static_cast<double>(below)) * (high - low);
}

std::optional<double> median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

std::optional<Interval> interval_of(const ResultRow& row, std::string_view metric) {
  static const std::set<std::string_view> kRates = {"tokens_per_s", "tokens_per_s_gpu", "tflops_gpu", "mfu",
                                                    "hfu",          "mt_per_hour"};
  const auto& step = row.metrics.step_ms;
  const auto& low = row.metrics.step_ms_ci_low;
  const auto& high = row.metrics.step_ms_ci_high;
  if (!step || !low || !high || *low <= 0 || *high < *low) return std::nullopt;
  if (metric == "step_ms") return Interval{*low, *high};
  const Column* column = find_column(metric);
  const auto value = column ? number(column->get(row)) : std::nullopt;
  if (!value) return std::nullopt;
  if (kRates.contains(metric)) return Interval{*value * *step / *high, *value * *step / *low};
  if (metric == "cost_per_mt") return Interval{*value * *low / *step, *value * *high / *step};
  return std::nullopt;
}

}  // namespace sweep::report
