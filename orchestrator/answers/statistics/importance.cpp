#include "orchestrator/answers/statistics/importance.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/answers/statistics/statistics.h"

namespace sweep::answers {
namespace {

struct Sample {
  std::vector<const ResultRow*> rows;
  std::vector<double> values;  // log(metric), less the mean of the row's group
  std::size_t groups = 0;
  double squares = 0;
};

Sample sample_of(std::span<const ResultRow> rows, const Field& metric, std::span<const std::string> apart) {
  Sample out;
  std::map<std::vector<Value>, Mean> means;
  std::vector<Mean*> group_of;
  for (const ResultRow& row : rows) {
    const auto value = number(metric.of(row));
    if (cell_outcome_of(row) != CellOutcome::kOk || !value || !(*value > 0)) continue;
    std::vector<Value> key;
    for (const std::string& name : apart) key.push_back(find_column(name)->get(row));
    group_of.push_back(&means[std::move(key)]);
    out.rows.push_back(&row), out.values.push_back(std::log(*value));
    group_of.back()->add(out.values.back());
  }
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    out.values[i] -= group_of[i]->value();
    out.squares += out.values[i] * out.values[i];
  }
  out.groups = means.size();
  return out;
}

double share_of(const Sample& sample, const Indexed& index) {
  std::vector<Mean> means(index.keys.size());
  for (std::size_t i = 0; i < sample.values.size(); ++i) means[index.of[i]].add(sample.values[i]);
  double between = 0;
  for (const Mean& mean : means) between += mean.count * mean.value() * mean.value();
  const double levels = static_cast<double>(means.size() - 1);
  const double rest = static_cast<double>(sample.values.size()) - static_cast<double>(sample.groups) - levels;
  if (rest <= 0) return 0;  // a value for each result: its means are the results
  const double noise = (sample.squares - between) / rest;
  return std::clamp((between - levels * noise) / sample.squares, 0.0, 1.0);
}

}  // namespace

bool follows_from_others(const Field& field) {
  static constexpr std::string_view kNames[] = {"gpus_per_node", "grad_accum", "global_batch_size"};
  return std::ranges::find(kNames, field.name()) != std::end(kNames);
}

std::vector<AxisImportance> importance(std::span<const ResultRow> rows, const Field& metric,
                                       std::span<const Field> axes, std::span<const std::string> apart) {
  std::vector<AxisImportance> out;
  const Sample sample = sample_of(rows, metric, apart);
  constexpr double kEqual = 1e-18;  // difference that rounding leaves between equal values
  if (sample.rows.size() < 3 || sample.squares < kEqual * double(sample.rows.size())) return out;
  for (const Field& axis : axes) {
    if (std::ranges::find(apart, axis.name()) != apart.end()) continue;
    const Indexed index = index_of(sample.rows, axis);
    if (index.keys.size() > 1) out.push_back({axis, index.keys.size(), share_of(sample, index)});
  }
  std::ranges::stable_sort(out, std::greater<>(), &AxisImportance::share);
  return out;
}

}  // namespace sweep::answers
