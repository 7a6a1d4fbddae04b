// Statistics over results: order statistics, and the interval of a metric. Confidence intervals of the step
// time itself come from the samples and are computed in metrics/; here they are only carried over to metrics
// that follow from it.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "base/quantiles.h"
#include "schema/result_row.h"

namespace sweep::answers {

struct Mean {
  double sum = 0, count = 0;
  void add(double value) { sum += value, count += 1; }
  double value() const { return count > 0 ? sum / count : 0; }  // 0 of nothing
};

struct Interval {
  double low = 0, high = 0;
  bool overlaps(const Interval& other) const { return low <= other.high && other.low <= high; }
};

// Whether two results cannot be distinguished: equal values, or intervals that overlap. The one rule of every
// answer that names a best.
bool are_tied(double a, const std::optional<Interval>& of_a, double b, const std::optional<Interval>& of_b);

// The 95 % interval of a metric of this row: of step_ms as measured; of rates (tokens/s, MFU, ...) and costs,
// which are proportional to 1/step_ms and step_ms, carried over. Absent when the step time has none, or for
// any other metric.
std::optional<Interval> interval_of(const ResultRow&, std::string_view metric);

// The same of many rows: how the metric follows from the step time is asked once. NaN: not measured.
enum class FollowsStep { kNot, kIsIt, kInversely, kProportionally };
FollowsStep follows_step(std::string_view metric);
struct StepTime {
  double ms, low, high;
};
std::optional<Interval> interval_of(FollowsStep, double value, const StepTime&);

// 95 % interval of after / before - 1 from an interval of each, by the method of variance estimates recovery
// (Zou and Donner 2008) on the logarithms, and the two-sided p-value at which it would just touch 0. Absent
// unless every end is above 0 and contains its value.
struct RatioChange {
  Interval share;
  double p = 1;
};
std::optional<RatioChange> ratio_change(double before, const Interval& of_before, double after,
                                        const Interval& of_after);

// Adjusted p-values in the order given (Benjamini and Hochberg 1995): calling those at most r significant
// keeps the expected share of false ones among them at r.
std::vector<double> benjamini_hochberg(const std::vector<double>& p);

// Ranks from 1, the smallest value first; equal values share the mean of their ranks.
std::vector<double> average_ranks(const std::vector<double>& values);
// Rank correlation of two lists of the same length (Spearman 1904; Pearson's coefficient of the average
// ranks). Absent for fewer than three pairs, or where one list is constant.
std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace sweep::answers
