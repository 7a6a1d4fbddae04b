#include "orchestrator/answers/statistics/side_by_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "orchestrator/answers/format.h"
#include "orchestrator/answers/tables/tables.h"

namespace sweep::answers {
namespace {

// Spreads of the step time: they are compared with it, and not with each other.
constexpr std::string_view kNotCompared[] = {"step_ms_iqr", "step_ms_ci_low", "step_ms_ci_high"};

// A metric without a direction says how a result came about.
std::vector<Field> compared_metrics() {
  std::vector<Field> out;
  for (const Column& c : columns())
    if (c.role == Role::kMetric && c.better != Better::kNone &&
        std::ranges::find(kNotCompared, c.key) == std::end(kNotCompared))
      out.emplace_back(c);
  return out;
}

Better direction(const Field& metric) {
  return find_column(metric.name())->better;
}

Value text_value(std::string_view text) {
  return text.empty() ? Value{} : Value{std::string(text)};
}

std::string ended(const ResultRow& row) {
  return row.state == State::kFinished ? std::string(to_string(row.outcome)) : "not run yet";
}

}  // namespace

std::optional<double> SideMetric::ratio(std::size_t result) const {
  const auto &first = values.front(), &value = values[result];
  if (!first || !value || *first == 0) return std::nullopt;
  return *value / *first;
}

Value word_of(Better better) {
  return text_value(better == Better::kHigher ? "higher" : better == Better::kLower ? "lower" : "");
}

std::string_view verdict(Better better, const std::optional<double>& ratio) {
  if (better == Better::kNone || !ratio) return "";
  if (*ratio == 1) return "same";
  return (*ratio > 1) == (better == Better::kHigher) ? "better" : "worse";
}

SideBySide side_by_side(std::vector<const ResultRow*> results) {
  SideBySide out;
  std::vector<ResultRow> rows;
  for (const ResultRow* row : results) rows.push_back(*row);
  out.differ = varying(rows);
  for (const Field& metric : compared_metrics()) {
    SideMetric one{metric, direction(metric), {}};
    for (const ResultRow& row : rows) one.values.push_back(number(metric.of(row)));
    if (std::ranges::any_of(one.values, [](const auto& value) { return value.has_value(); }))
      out.metrics.push_back(std::move(one));
  }
  out.results = std::move(results);
  return out;
}

Table side_table(const SideBySide& sides) {
  const auto cell = [](const std::optional<double>& value) { return value ? Value{*value} : Value{}; };
  Table out;
  out.columns = {"metric", "unit", "better"};
  for (const ResultRow* row : sides.results) out.columns.push_back(row->trial_id);
  for (std::size_t i = 1; i < sides.results.size(); ++i)
    for (const char* what : {"ratio_", "verdict_"}) out.columns.push_back(what + sides.results[i]->trial_id);
  for (const SideMetric& one : sides.metrics) {
    auto& line = out.rows.emplace_back();
    line = {one.metric.name(), text_value(one.metric.unit()), word_of(one.better)};
    for (const auto& value : one.values) line.push_back(cell(value));
    for (std::size_t i = 1; i < one.values.size(); ++i) {
      const auto said = verdict(one.better, one.ratio(i));
      line.push_back(cell(one.ratio(i)));
      line.push_back(text_value(said));
    }
  }
  return out;
}

Table difference_table(const SideBySide& sides) {
  Table out;
  out.columns = {"setting"};
  for (const ResultRow* row : sides.results) out.columns.push_back(row->trial_id);
  const auto add = [&](const std::string& name, auto&& text_of) {
    auto& line = out.rows.emplace_back(std::vector<Value>{name});
    for (const ResultRow* row : sides.results) line.push_back(Value{text_of(*row)});
  };
  for (const Field& field : sides.differ)
    add(field.name(), [&](const ResultRow& row) { return show(field.of(row)); });
  add("outcome", ended);
  return out;
}

Table shown_metrics(const SideBySide& sides,
                    const std::function<std::string(const Field&, const Scale&)>& name) {
  Table out;
  out.columns = {"metric", "better is"};
  for (const ResultRow* row : sides.results) out.columns.push_back(row->trial_id);
  for (std::size_t i = 1; i < sides.results.size(); ++i)
    out.columns.push_back(fmt::format("{} of {}", sides.results[i]->trial_id.substr(0, 8),
                                      sides.results[0]->trial_id.substr(0, 8)));
  for (const SideMetric& one : sides.metrics) {
    double largest = 0;
    for (const auto& value : one.values) largest = std::max(largest, std::abs(value.value_or(0)));
    const Scale scale = scale_for(one.metric.unit(), largest);
    auto& line = out.rows.emplace_back(std::vector<Value>{name(one.metric, scale), word_of(one.better)});
    for (const auto& value : one.values) line.push_back(value ? Value{scale(*value)} : Value{});
    for (std::size_t i = 1; i < one.values.size(); ++i) {
      const auto ratio = one.ratio(i);
      const auto said = verdict(one.better, ratio);
      line.push_back(ratio ? Value{fmt::format("{}×{}{}", significant(*ratio), said.empty() ? "" : " ", said)}
                           : Value{});
    }
  }
  return out;
}

std::string side_text(const SideBySide& sides, std::size_t width) {
  const auto name = [](const Field& metric, const Scale& scale) {
    return metric.name() + (scale.unit.empty() ? "" : " [" + scale.unit + "]");
  };
  return to_text(difference_table(sides), width) + "\n" + to_text(shown_metrics(sides, name), width);
}

std::vector<PairedMetric> paired_metrics(const Comparison& found) {
  std::vector<PairedMetric> out;
  for (const Field& metric : compared_metrics()) {
    PairedMetric one{.metric = metric, .better = direction(metric)};
    std::vector<double> ratios;
    for (const Pair& pair : found.pairs) {
      if (pair.a->outcome != Outcome::kOk || pair.b->outcome != Outcome::kOk) continue;
      const auto before = number(metric.of(*pair.a)), after = number(metric.of(*pair.b));
      if (!before || !after || *before == 0) continue;
      ratios.push_back(*after / *before);
      const auto said = verdict(one.better, ratios.back());
      one.improved += said == "better", one.worsened += said == "worse";
    }
    if (ratios.empty()) continue;
    one.pairs = static_cast<i64>(ratios.size()), one.ratio = *median(ratios);
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace sweep::answers
