// The best trials of a sweep, from two columns of all results.
#include <fmt/format.h>

#include <algorithm>

#include "base/fail.h"
#include "orchestrator/store/columns.h"
#include "orchestrator/store/store_file.h"
#include "schema/ranking.h"

namespace sweep::store {

Expected<std::vector<ResultRow>> Answers::best(i64 sweep, const std::string& metric, i64 limit) {
  const sweep::Column* column = find_column(metric);
  if (!column || column->better == Better::kNone)
    return fail(ErrorKind::kUnknownName, metric, "'{}' is no metric with a best; these have one: {}", metric,
                ranked_metrics());
  ColumnSelection wanted = kMayBeBestColumns;
  wanted.numbers.push_back(metric);
  const auto columns = result_columns(sweep, wanted);
  if (!columns) return tl::unexpected<Error>(columns.error());
  const std::vector<double>& values = columns->numbers.at(metric);
  const std::vector<bool> may_be = may_be_best(*columns);
  std::vector<std::size_t> ranked;
  for (std::size_t row = 0; row < columns->size(); ++row)
    if (may_be[row] && !std::isnan(values[row])) ranked.push_back(row);
  const auto before = [&](std::size_t a, std::size_t b) {
    return ranks_before(column->better, values[a], columns->trial[a], values[b], columns->trial[b]);
  };
  const auto count = std::min(ranked.size(), static_cast<std::size_t>(std::max<i64>(limit, 1)));
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count), ranked.end(),
                    before);
  std::vector<i64> entries;
  for (std::size_t at = 0; at < count; ++at) entries.push_back(columns->entry[ranked[at]]);
  return results_of(entries);
}

Expected<std::string> Answers::usual_metric(i64 sweep) {
  const auto columns = result_columns(sweep, {{}, {kUsualMetricColumns.begin(), kUsualMetricColumns.end()}});
  if (!columns) return tl::unexpected<Error>(columns.error());
  return sweep::usual_metric(*columns);
}

}  // namespace sweep::store
