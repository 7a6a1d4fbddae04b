// Importance: how much of the differences between results each axis accounts for by itself.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "orchestrator/answers/fields.h"

namespace sweep::answers {

struct AxisImportance {
  Field axis;
  std::size_t values = 0;  // values of the axis among the results that count
  double share = 0;        // share of the variance, from 0 to 1
};

// Values that other axes usually determine (gpus_per_node, grad_accum, global_batch_size): no axis to choose first.
bool follows_from_others(const Field&);

// The share of the variance of log(metric) that the means of an axis' values account for (Kelley's epsilon squared:
// corrected for the number of values, so that an axis of many values does not seem important by chance). Results that
// ended ok with the metric above 0 count, each against the mean of its group: the rows equal in `apart`. Shares of axes
// that change together overlap and do not add up to 1. The most important axis comes first; empty for fewer than three
// results, or where all are equal.
std::vector<AxisImportance> importance(std::span<const ResultRow>, const Field& metric,
                                       std::span<const Field> axes, std::span<const std::string> apart);

}  // namespace sweep::answers
