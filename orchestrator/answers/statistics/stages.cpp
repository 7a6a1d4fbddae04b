#include "orchestrator/answers/statistics/stages.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "orchestrator/answers/format.h"
#include "schema/labels.h"
#include "schema/ranking.h"

namespace sweep::answers {
namespace {

struct Placed {
  i64 number = 0;
  std::string name;
  const ResultRow* row = nullptr;
};

std::vector<Placed> placed(std::span<const ResultRow> rows) {
  std::vector<Placed> out;
  for (const ResultRow& row : rows) {
    const auto labels = label_members(row.trial.labels);
    const auto number = labels.find(kStageNumber), name = labels.find(kStageLabel);
    if (number == labels.end() || name == labels.end() || !number->is_number_integer() || !name->is_string())
      continue;
    out.push_back({number->get<i64>(), name->get<std::string>(), &row});
  }
  std::ranges::stable_sort(out, {}, &Placed::number);
  return out;
}

// Trials of one stage differ in what tells the series apart.
std::vector<Field> between_series(std::span<const Placed> all, std::span<const Field> differ) {
  std::map<i64, std::vector<const ResultRow*>> stages;
  for (const Placed& one : all) stages[one.number].push_back(one.row);
  const auto largest =
      std::ranges::max_element(stages, {}, [](const auto& stage) { return stage.second.size(); });
  return largest == stages.end() ? std::vector<Field>() : telling_apart(differ, largest->second);
}

std::string change_between(const ResultRow& before, const ResultRow& now, std::span<const Field> differ) {
  std::vector<Field> changed;
  for (const Field& field : differ) {
    if (field.name() != kStageLabel && field.of(before) != field.of(now)) changed.push_back(field);
  }
  return setting_text(now, changed);
}

std::optional<double> factor(std::optional<double> now, std::optional<double> before, bool lower) {
  if (!now || !before || *now <= 0 || *before <= 0) return {};
  return lower ? *before / *now : *now / *before;
}

void compare(std::vector<StageResult>& stages, const Field& metric, std::span<const Field> differ) {
  const bool lower = lower_is_better(metric.name());
  std::optional<double> first, before;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    StageResult& stage = stages[i];
    if (i > 0) stage.change = change_between(*stages[i - 1].row, *stage.row, differ);
    if (may_be_best(*stage.row)) stage.value = number(metric.of(*stage.row));
    if (!stage.value) continue;
    stage.over_before = factor(stage.value, before, lower);
    stage.over_first = factor(stage.value, first, lower);
    before = stage.value;
    if (!first) first = stage.value;
  }
}

}  // namespace

std::vector<StageSeries> stage_series(std::span<const ResultRow> rows, const Field& metric) {
  const auto all = placed(rows);
  const auto differ = varying(rows);
  const auto apart = between_series(all, differ);
  std::map<std::vector<Value>, StageSeries, ValuesLess> series;
  for (const Placed& one : all) {
    std::vector<Value> key;
    for (const Field& field : apart) key.push_back(field.of(*one.row));
    StageSeries& to = series[std::move(key)];
    if (to.stages.empty()) to.name = setting_text(*one.row, apart);
    to.stages.push_back({one.name, "", one.row, {}, {}, {}});
  }
  std::vector<StageSeries> out;
  for (auto& [key, one] : series) {
    compare(one.stages, metric, differ);
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace sweep::answers
