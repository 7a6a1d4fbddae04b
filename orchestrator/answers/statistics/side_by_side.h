// Side by side: a few results, what differs between their settings, and each metric with its direction and its ratio to
// the first of them; and the same of the configurations that two sweeps have in common, as medians.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/statistics/compare.h"
#include "schema/columns.h"

namespace sweep::answers {

struct SideMetric {
  Field metric;
  Better better = Better::kNone;
  std::vector<std::optional<double>> values;  // one for each result
  // The value divided by the first one's; nullopt: one of them is missing, or the first is 0.
  std::optional<double> ratio(std::size_t result) const;
};
// "better", "worse", "same"; empty: the metric has no direction, or there is no ratio.
std::string_view verdict(Better, const std::optional<double>& ratio);

Value word_of(Better);  // "higher", "lower"; NULL: it has no direction

struct SideBySide {
  std::vector<const ResultRow*> results;
  std::vector<Field> differ;  // settings whose values are not all the same
  std::vector<SideMetric>
      metrics;  // numbers that at least one of them has, in the order of schema/fields.def
};
SideBySide side_by_side(std::vector<const ResultRow*> results);
// A row for each metric: metric, unit, direction, a value for each result, a ratio and a verdict for each but the first.
Table side_table(const SideBySide&);
// A row for each setting that differs, and for how each ended.
Table difference_table(const SideBySide&);
// The metrics as people read them; `name`: of a metric with its unit.
Table shown_metrics(const SideBySide&, const std::function<std::string(const Field&, const Scale&)>& name);
std::string side_text(const SideBySide&, std::size_t width);

// One metric over the configurations that ended ok in both sweeps and have it in both.
struct PairedMetric {
  Field metric;
  Better better = Better::kNone;
  i64 pairs = 0, improved = 0, worsened = 0;
  double ratio = 1;  // median of after / before
};
std::vector<PairedMetric> paired_metrics(const Comparison&);

}  // namespace sweep::answers
