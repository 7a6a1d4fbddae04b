// Order statistics of a sample. Every function takes the sample in any order; an empty one gives nothing.
#pragma once
#include <optional>
#include <utility>
#include <vector>

namespace sweep {

std::optional<double> median(std::vector<double>);
// Linear interpolation between the two neighbours (type 7 of Hyndman and Fan 1996, the default of NumPy and
// R).
std::optional<double> quantile(std::vector<double>, double q);
// Third quartile less first; nothing below two values.
std::optional<double> interquartile_range(const std::vector<double>&);
// 95 % confidence interval of the median from order statistics (David and Nagaraja 2003, section 7.1): no
// assumption on the distribution. Nothing below six values, where no such interval exists.
std::optional<std::pair<double, double>> median_interval(std::vector<double>);

}  // namespace sweep
