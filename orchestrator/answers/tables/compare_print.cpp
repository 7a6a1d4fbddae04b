
#include <fmt/format.h>

#include <algorithm>
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

// The fields that tell the shown configurations apart.
std::vector<Field> fields_of(std::span<const Comparison> found) {
  std::vector<ResultRow> rows;
  for (const Comparison& one : found)
    for (const Pair& pair : one.pairs) rows.push_back(*pair.a);
  return varying(rows);
}

std::string reason_of(const Pair& pair) {
  const ResultRow& bad = pair.change == Change::kBroke ? *pair.b : *pair.a;
  if (pair.change != Change::kBroke && pair.change != Change::kRepaired) return "";
  return fmt::format("{}{}{}", to_string(bad.outcome), bad.reason.empty() ? "" : ": ", safe_text(bad.reason));
}

std::string alone(const std::string& where, const std::vector<const ResultRow*>& rows, bool named) {
  if (rows.empty()) return "";
  std::vector<std::string> names;
  for (const ResultRow* row : rows) {
    if (named && names.size() < kNamedAlone) names.push_back(safe_text(row->trial_id));
  }
  return fmt::format("{} {}{}{}{}\n", counted(std::int64_t(rows.size()), "configuration"), where,
                     named ? ": " : "", fmt::join(names, ", "),
                     named && rows.size() > names.size() ? ", ..." : "");
}

using Counts = std::array<i64, 6>;  // counts by Change

Counts counts_of(const Comparison& found) {
  Counts count{};
  for (const Pair& pair : found.pairs) ++count[std::size_t(pair.change)];
  return count;
}

std::string changes_line(const Comparison& found, const CompareOptions& options) {
  const Counts count = counts_of(found);
  std::string parts;
  for (std::size_t i = 0; i < count.size(); ++i) {
    if (count[i] > 0)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", count[i], to_string(Change(i)));
  }
  const bool alike = count[std::size_t(Change::kUnclear)] == i64(found.pairs.size()) && !found.pairs.empty();
  return fmt::format("{} compared by {}: {}\n", counted(i64(found.pairs.size()), "configuration"),
                     Names({}).of(options.metric),
                     alike           ? "no significant difference"
                     : parts.empty() ? "none ok on both sides"
                                     : parts);
}

// Values of the metric as people read them, in one unit.
struct Shown {
  Scale scale;
  std::string unit;  // " [ms]", for heads
  Value of(const std::optional<double>& value) const { return value ? Value{scale(*value)} : Value{}; }
};

Shown shown_values(std::span<const Comparison> found, const std::string& name) {
  double largest = 0;
  for (const Comparison& one : found)
    for (const Pair& pair : one.pairs)
      largest = std::max({largest, pair.before.value_or(0), pair.after.value_or(0)});
  const Scale scale = scale_for(resolve_metric(name)->unit(), largest);
  return {scale, scale.unit.empty() ? "" : fmt::format(" [{}]", scale.unit)};
}

std::string verdict_of(const Pair& pair) {
  return fmt::format("{}{}", to_string(pair.change), pair.regression ? " !" : "");
}

std::string interval_text(const Pair& pair) {
  return fmt::format("{} to {}", signed_percent(pair.interval->low), signed_percent(pair.interval->high));
}

Table pairs_shown(const Comparison& found, const CompareOptions& options) {
  const auto shown = fields_of({&found, 1});
  const Shown values = shown_values({&found, 1}, options.metric);
  Table table;
  table.columns = {"",    "change", "95 % interval", "A" + values.unit, "B" + values.unit, "configuration",
                   "why", "trial"};
  bool reasons = false;
  for (const Pair& pair : found.pairs) {
    const std::string why = reason_of(pair);
    reasons |= !why.empty();
    table.rows.push_back({verdict_of(pair), pair.share ? Value{signed_percent(*pair.share)} : Value{},
                          pair.interval && !found.exact ? Value{interval_text(pair)} : Value{},
                          values.of(pair.before), values.of(pair.after), setting_text(*pair.a, shown),
                          why.empty() ? Value{} : Value{why}, pair.a->trial_id});
  }
  if (!reasons) {
    table.columns.erase(table.columns.begin() + 6);
    for (auto& row : table.rows) row.erase(row.begin() + 6);
  }
  return table;
}

// "worse ! -20.0 % (-22.1 % to -17.8 %)", "broke (oom)".
std::string change_cell(const Pair& pair, bool exact) {
  std::string out = verdict_of(pair);
  if (pair.share) out += " " + signed_percent(*pair.share);
  if (pair.interval && !exact) out += fmt::format(" ({})", interval_text(pair));
  if (pair.change == Change::kBroke) out += fmt::format(" ({})", to_string(pair.b->outcome));
  if (pair.change == Change::kRepaired) out += fmt::format(" (was {})", to_string(pair.a->outcome));
  return out;
}

Table configurations_shown(std::span<const Comparison> found, const CompareOptions& options) {
  const auto shown = fields_of(found);
  const Shown values = shown_values(found, options.metric);
  Table table;
  table.columns = {"configuration", "A" + values.unit};
  for (std::size_t side = 1; side <= found.size(); ++side)
    table.columns.insert(table.columns.end(),
                         {side_letter(side) + values.unit, side_letter(side) + " against A"});
  table.columns.emplace_back("trial");
  const Field metric = *resolve_metric(options.metric);
  const auto value = [&](const ResultRow& row) {
    return row.outcome == Outcome::kOk ? values.of(number(metric.of(row))) : Value{};
  };
  for (const ComparedConfiguration& one : by_configuration(found)) {
    auto& line = table.rows.emplace_back();
    line = {setting_text(*one.a, shown), value(*one.a)};
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Pair* pair = one.pairs[i];
      line.push_back(pair ? value(*pair->b) : Value{});
      line.push_back(pair ? Value{change_cell(*pair, found[i].exact)} : Value{});
    }
    line.emplace_back(one.a->trial_id);
  }
  return table;
}

std::string legend(std::span<const std::string> names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i)
    out += fmt::format("{}{}: {}", i > 0 ? "; " : "", side_letter(i), safe_text(names[i]));
  return out + "\n";
}

}  // namespace

std::string compare_summary(std::span<const Comparison> found, const CompareOptions& options) {
  std::string out;
  i64 unmeasured = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    out += (found.size() > 1 ? side_letter(i + 1) + ": " : "") + changes_line(found[i], options);
    unmeasured += counts_of(found[i])[std::size_t(Change::kNoMeasure)];
  }
  if (found.front().exact)
    out += "This metric has no noise: every difference counts.\n";
  else
    out += fmt::format(
        "worse and better: false discovery rate {:.3g} % over all pairs (Benjamini-Hochberg); change with "
        "its 95 % "
        "interval.\n",
        options.false_discovery_rate * 100);
  if (unmeasured > 0)
    out +=
        "no interval: fewer than 6 timed steps, or an import; such a change is shown and never called "
        "significant.\n";
  return out;
}

Table compare_table(std::span<const Comparison> found, std::span<const std::string> names,
                    const CompareOptions& options) {
  const auto shown = fields_of(found);
  const bool several = found.size() > 1;
  Table out;
  if (several) out.columns = {"side", "sweep"};
  out.columns.insert(out.columns.end(), {"change", "regression", "configuration", options.metric + "_a",
                                         options.metric + "_b", "share", "share_ci_low", "share_ci_high", "p",
                                         "q", "outcome_a", "outcome_b", "reason", "trial"});
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const Pair& pair : found[i].pairs) {
      auto& line = out.rows.emplace_back();
      if (several) line = {side_letter(i + 1), names[i + 1]};
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
  }
  return out;
}

Table compare_shown(std::span<const Comparison> found, const CompareOptions& options) {
  return found.size() == 1 ? pairs_shown(found.front(), options) : configurations_shown(found, options);
}

std::string alone_lines(std::span<const Comparison> found, bool named) {
  if (found.size() == 1)
    return alone("only in A", found.front().only_a, named) + alone("only in B", found.front().only_b, named);
  std::string out;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::string side = side_letter(i + 1);
    out += alone("in A and not in " + side, found[i].only_a, named) +
           alone(fmt::format("in {} and not in A", side), found[i].only_b, named);
  }
  return out;
}

std::string uncompared_lines(std::span<const Comparison> found) {
  std::string out;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::string sides = found.size() > 1 ? ", A and " + side_letter(i + 1) : "";
    if (found[i].reused > 0)
      out += fmt::format("{} have one attempt on both sides{}, which one sweep reused: nothing to compare\n",
                         found[i].reused, sides);
    if (found[i].unanswered > 0)
      out += fmt::format("{} more were not measured on both sides{}: nothing to compare\n",
                         found[i].unanswered, sides);
  }
  return out;
}

std::string compare_text(std::span<const Comparison> found, std::span<const std::string> names,
                         const CompareOptions& options, std::size_t width) {
  std::string out = (found.size() > 1 ? legend(names) : "") + compare_summary(found, options);
  const auto has_pairs = [](const Comparison& one) { return !one.pairs.empty(); };
  if (std::ranges::any_of(found, has_pairs)) out += "\n" + to_text(compare_shown(found, options), width);
  if (const std::string lines = uncompared_lines(found); !lines.empty()) out += "\n" + lines;
  const std::string alone = alone_lines(found, true);
  return out + (alone.empty() ? "" : "\n") + alone;
}

}  // namespace sweep::answers
