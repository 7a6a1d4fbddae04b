// The report's answer, its cost and its landscape.
#include <fmt/format.h>

#include <algorithm>

#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/report/format.h"
#include "orchestrator/report/heatmap.h"
#include "orchestrator/report/launch_flags.h"
#include "orchestrator/report/measured.h"
#include "orchestrator/report/report_parts.h"

namespace sweep::report::parts {
namespace {

constexpr std::size_t kSpeltOut = 4;  // models whose best configuration is spelt out
constexpr double kTrillion = 1e12;

std::string value_of(const ResultRow& row, std::string_view metric) {
  const Column& column = *find_column(metric);
  const auto value = number(column.get(row));
  if (!value) return "";
  const Scale scale = scale_for(column.unit, std::abs(*value));
  return fmt::format("{}{}{}", scale(*value), scale.unit.empty() ? "" : " ", scale.unit);
}

std::string facts_of(const ResultRow& row) {
  std::string out;
  for (const char* metric :
       {"tokens_per_s", "tokens_per_s_gpu", "mfu", "step_ms", "peak_allocated_bytes", "cost_per_mt"}) {
    const std::string value = value_of(row, metric);
    if (!value.empty()) out += fmt::format("<li><b>{}</b> {}</li>", escape_xml(value), metric);
  }
  return fmt::format("<ul class=\"facts\">{}</ul>\n", out);
}

std::string certainty(const BestOfGroup& group, const std::string& metric) {
  std::string out;
  if (group.interval) {
    const Scale scale = scale_for(find_column(metric)->unit, group.value);
    out = fmt::format("95 % interval {} to {} {}. ", scale(group.interval->low), scale(group.interval->high),
                      scale.unit);
  }
  if (!group.ties.empty()) {
    std::string names;
    for (std::size_t i = 0; i < std::min<std::size_t>(5, group.ties.size()); ++i)
      names += (i ? ", " : "") + safe_text(group.ties[i]);
    return out +
           fmt::format(
               "Tied with {} more: their 95 % intervals overlap, so any of them may be the best ({}{}).",
               group.ties.size(), names, group.ties.size() > 5 ? ", ..." : "");
  }
  if (group.ranked < 2) return out + "The only configuration measured.";
  if (!group.interval)
    return out +
           "Whether others tie cannot be told: there is no confidence interval (fewer than 6 timed steps, or "
           "an import).";
  return out + "Ahead of every other by more than the 95 % intervals.";
}

std::string forms(const ResultRow& row) {
  std::string out =
      fmt::format("<div class=\"forms\">\n<div><h4>grid file</h4>\n{}</div>\n", block(as_grid_yaml(row)));
  for (const LaunchForm& form : launch_forms(row)) {
    out += fmt::format("<div><h4>{}</h4>\n{}", escape_xml(form.tool), block(form.text));
    if (!form.not_said.empty()) {
      out += "<p class=\"small\">Not expressed here:</p>\n<ul class=\"small\">";
      for (const auto& sentence : form.not_said) out += fmt::format("<li>{}</li>", escape_xml(sentence));
      out += "</ul>\n";
    }
    out += "</div>\n";
  }
  return out + "</div>\n";
}

std::string one_answer(const ReportInput& in, const BestOfGroup& group, std::span<const Field> differ,
                       bool named) {
  std::string out;
  if (named) out += fmt::format("<h3>{}</h3>\n", escape_xml(show(group.key.front())));
  if (!group.winner) return out + paragraph(group.why_none + ".");
  const ResultRow& row = *group.winner;
  out += fmt::format(
      "<p class=\"winner\"><b>{}</b> <span class=\"small\">trial {}, best of {} by {}</span></p>\n",
      escape_xml(name_of(row, differ)), escape_xml(row.trial_id), group.ranked, in.metric);
  out += facts_of(row) + paragraph(certainty(group, in.metric));
  const auto from = in.provenance_of ? in.provenance_of(row) : std::nullopt;
  std::string measured;
  for (const auto& line : measured_lines(row, from ? &*from : nullptr))
    measured += (measured.empty() ? "" : "; ") + line;
  out += fmt::format("<p class=\"small\">Measured: {}.</p>\n", escape_xml(measured));
  return out + forms(row);
}

// One way to be best, for the table of costs.
struct Pick {
  const char* what;
  const char* metric;
};
constexpr Pick kPicks[] = {
    {"fastest job", "tokens_per_s"}, {"fastest per GPU", "tokens_per_s_gpu"}, {"cheapest", "cost_per_mt"}};

const ResultRow* pick(std::span<const ResultRow> rows, const std::string& metric) {
  const Field field(*find_column(metric));
  const bool lower = lower_is_better(metric);
  const ResultRow* out = nullptr;
  double best = 0;
  for (const ResultRow& row : rows) {
    if (fate_of(row) != Fate::kOk) continue;
    const auto value = number(field.of(row));
    if (!value || (out && (lower ? *value >= best : *value <= best))) continue;
    out = &row, best = *value;
  }
  return out;
}

std::string price_of(const ResultRow& row) {
  const auto hardware = shape::find_hardware(row.trial.hardware);
  const auto& used = row.metrics.usd_per_node_hour;
  if (used && (!hardware || !hardware->price || hardware->price->usd_per_node_hour != *used))
    return fmt::format("{}: {:.2f} USD per node and hour (the site's price), whole nodes.",
                       row.trial.hardware, *used);
  if (!hardware || !hardware->price) return "";
  return fmt::format("{}: {:.2f} USD per node and hour ({}, {}), whole nodes.", row.trial.hardware,
                     hardware->price->usd_per_node_hour, hardware->price->source, hardware->price->date);
}

}  // namespace

std::string answer(const ReportInput& in, std::span<const BestOfGroup> groups, const BestOptions&) {
  if (groups.empty()) return paragraph("The sweep has no configurations yet.");
  const auto differ = varying_among_ok(in.rows);
  std::string out;
  for (std::size_t i = 0; i < std::min(groups.size(), kSpeltOut); ++i)
    out += one_answer(in, groups[i], differ, groups.size() > 1);
  if (groups.size() > kSpeltOut)
    out += paragraph(fmt::format("{} more models: `sweep best --by model` has their configurations.",
                                 groups.size() - kSpeltOut));
  return out;
}

std::string cost(const ReportInput& in) {
  const auto differ = varying_among_ok(in.rows);
  Table table;
  table.columns = {"",
                   "configuration",
                   "nodes",
                   "MT per hour",
                   "USD per MT",
                   "days for 1 T tokens",
                   "USD for 1 T tokens",
                   "trial"};
  std::string prices;
  for (const Pick& one : kPicks) {
    const ResultRow* row = pick(in.rows, one.metric);
    if (!row) continue;
    const auto &speed = row->metrics.mt_per_hour, &price = row->metrics.cost_per_mt;
    const auto real = [](std::optional<double> v) { return v ? Value{significant(*v)} : Value{}; };
    table.rows.push_back({std::string(one.what), name_of(*row, differ), row->trial.nodes, real(speed),
                          real(price), speed && *speed > 0 ? real(kTrillion / 1e6 / *speed / 24) : Value{},
                          price ? Value{si(*price * kTrillion / 1e6)} : Value{}, row->trial_id});
    const std::string text = price_of(*row);
    if (!text.empty() && prices.find(text) == std::string::npos) prices += (prices.empty() ? "" : " ") + text;
  }
  if (table.rows.empty()) return paragraph("Nothing was measured that a cost follows from.");
  const std::string_view unpriced =
      "No cost: neither the site profile nor the hardware catalogue has a price for this hardware.";
  return html_table(table) + fmt::format("<p class=\"small\">{}</p>\n",
                                         escape_xml(prices.empty() ? unpriced : std::string_view(prices)));
}

std::string landscape(const ReportInput& in) {
  if (in.rows.empty()) return paragraph("No configurations to draw.");
  // Nodes across and models down where they vary, as people compare clusters; else the axes with most values.
  const auto differs = [&](const char* axis) {
    const Field field(*find_column(axis));
    const Value first = field.of(in.rows.front());
    return std::any_of(in.rows.begin(), in.rows.end(),
                       [&](const ResultRow& r) { return field.of(r) != first; });
  };
  std::string across = in.heatmap_cols, down = in.heatmap_rows;
  if (across.empty() && down != "nodes" && differs("nodes")) across = "nodes";
  if (down.empty() && across != "model" && differs("model")) down = "model";
  const auto map = heatmap(
      in.rows,
      {.rows = down, .cols = across, .value = in.metric, .objective = "", .title = "", .question = ""});
  if (!map) return paragraph(map.error().message);
  return fmt::format("<div class=\"wide chart\">{}</div>\n", to_svg(*map));
}

}  // namespace sweep::report::parts
