
#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/names.h"
#include "orchestrator/answers/statistics/compare.h"
#include "orchestrator/answers/tables/tables.h"

namespace sweep::answers {
namespace {

constexpr std::size_t kNamedAlone = 5;

Value cell_of(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Value{*value} : Value{};
}

std::string signed_percent(double share) {
  return fmt::format("{:+.1f} %", share * 100);
}

// The fields that tell the shown configurations apart.
std::vector<Field> fields_of(const Comparison& found) {
  std::vector<ResultRow> rows;
  for (const Pair& pair : found.pairs) rows.push_back(*pair.a);
  return varying(rows);
}

std::string reason_of(const Pair& pair) {
  const ResultRow& bad = pair.change == Change::kBroke ? *pair.b : *pair.a;
  if (pair.change != Change::kBroke && pair.change != Change::kRepaired) return "";
  return fmt::format("{}{}{}", to_string(bad.outcome), bad.reason.empty() ? "" : ": ", safe_text(bad.reason));
}

std::string alone(std::string_view where, const std::vector<const ResultRow*>& rows) {
  if (rows.empty()) return "";
  std::vector<std::string> names;
  for (const ResultRow* row : rows) {
    if (names.size() < kNamedAlone) names.push_back(safe_text(row->trial_id));
  }
  return fmt::format("{} configuration{} only in {}: {}{}\n", rows.size(), rows.size() == 1 ? "" : "s", where,
                     fmt::join(names, ", "), rows.size() > names.size() ? ", ..." : "");
}

}  // namespace

std::string compare_summary(const Comparison& found, const CompareOptions& options) {
  std::array<i64, 6> count{};
  for (const Pair& pair : found.pairs) ++count[std::size_t(pair.change)];
  std::string parts;
  for (std::size_t i = 0; i < count.size(); ++i) {
    if (count[i] > 0)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", count[i], to_string(Change(i)));
  }
  const bool alike = count[std::size_t(Change::kUnclear)] == i64(found.pairs.size()) && !found.pairs.empty();
  std::string out = fmt::format("{} compared by {}: {}\n", counted(i64(found.pairs.size()), "configuration"),
                                Names({}).of(options.metric),
                                alike           ? "no significant difference"
                                : parts.empty() ? "none ok on both sides"
                                                : parts);
  if (found.exact)
    out += "This metric has no noise: every difference counts.\n";
  else
    out += fmt::format(
        "worse and better: false discovery rate {:.3g} % over all pairs (Benjamini-Hochberg); change with "
        "its 95 % "
        "interval.\n",
        options.false_discovery_rate * 100);
  if (count[std::size_t(Change::kNoMeasure)] > 0)
    out +=
        "no interval: fewer than 6 timed steps, or an import; such a change is shown and never called "
        "significant.\n";
  return out;
}

Table compare_table(const Comparison& found, const CompareOptions& options) {
  const auto shown = fields_of(found);
  Table out;
  out.columns = {"change",
                 "regression",
                 "configuration",
                 options.metric + "_a",
                 options.metric + "_b",
                 "share",
                 "share_ci_low",
                 "share_ci_high",
                 "p",
                 "q",
                 "outcome_a",
                 "outcome_b",
                 "reason",
                 "trial"};
  for (const Pair& pair : found.pairs) {
    auto& line = out.rows.emplace_back();
    line.emplace_back(std::string(to_string(pair.change)));
    line.emplace_back(i64{pair.regression});
    line.emplace_back(setting_text(*pair.a, shown));
    for (const auto& value : {pair.before, pair.after, pair.share}) line.push_back(cell_of(value));
    line.push_back(pair.interval ? cell_of(pair.interval->low) : Value{});
    line.push_back(pair.interval ? cell_of(pair.interval->high) : Value{});
    line.push_back(cell_of(pair.p));
    line.push_back(cell_of(pair.q));
    for (const ResultRow* row : {pair.a, pair.b}) line.emplace_back(std::string(to_string(row->outcome)));
    line.emplace_back(reason_of(pair));
    line.emplace_back(pair.a->trial_id);
  }
  return out;
}

Table compare_shown(const Comparison& found, const CompareOptions& options) {
  const auto shown = fields_of(found);
  const Field metric = *resolve_metric(options.metric);
  double largest = 0;
  for (const Pair& pair : found.pairs)
    largest = std::max({largest, pair.before.value_or(0), pair.after.value_or(0)});
  const Scale scale = scale_for(metric.unit(), largest);
  const std::string unit = scale.unit.empty() ? "" : fmt::format(" [{}]", scale.unit);
  Table table;
  table.columns = {"", "change", "95 % interval", "A" + unit, "B" + unit, "configuration", "why", "trial"};
  bool reasons = false;
  for (const Pair& pair : found.pairs) {
    const auto side = [&](const std::optional<double>& v) { return v ? Value{scale(*v)} : Value{}; };
    const std::string why = reason_of(pair);
    reasons |= !why.empty();
    table.rows.push_back({fmt::format("{}{}", to_string(pair.change), pair.regression ? " !" : ""),
                          pair.share ? Value{signed_percent(*pair.share)} : Value{},
                          pair.interval && !found.exact
                              ? Value{fmt::format("{} to {}", signed_percent(pair.interval->low),
                                                  signed_percent(pair.interval->high))}
                              : Value{},
                          side(pair.before), side(pair.after), setting_text(*pair.a, shown),
                          why.empty() ? Value{} : Value{why}, pair.a->trial_id});
  }
  if (!reasons) {
    table.columns.erase(table.columns.begin() + 6);
    for (auto& row : table.rows) row.erase(row.begin() + 6);
  }
  return table;
}

std::string compare_text(const Comparison& found, const CompareOptions& options, std::size_t width) {
  std::string out = compare_summary(found, options);
  if (!found.pairs.empty()) out += "\n" + to_text(compare_shown(found, options), width);
  if (found.unanswered > 0)
    out += fmt::format("\n{} more were not measured on both sides: nothing to compare\n", found.unanswered);
  if (!found.only_a.empty() || !found.only_b.empty()) out += "\n";
  return out + alone("A", found.only_a) + alone("B", found.only_b);
}

}  // namespace sweep::answers
